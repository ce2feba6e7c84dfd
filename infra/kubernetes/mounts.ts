// What must be mounted before a gateway can start? Everything that is missing is said at once.
import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toDatabaseConnection, toStoreConnection } from '#core/connections.ts';
import type { DatabaseConnection, StoreConnection } from '#core/ports/backends.ts';
import { reasonOf } from '#core/reason.ts';
import { Snapshot } from '#core/snapshot.ts';
import type { GatewayEnvironment } from '../config/environments.ts';
import { listProblems } from '../config/read-environment.ts';

export interface Mounts {
  readonly instanceUid: string;
  readonly connection: DatabaseConnection;
  readonly storeConnection: StoreConnection;
}

type Paths = Pick<GatewayEnvironment, 'SNAPSHOT_FILE' | 'DATABASE_DIR' | 'STORE_DIR' | 'OUTBOX_DIR'>;

/** Throws with one line per mount that is not as it must be. Credentials may be missing: their model entries drop out. */
export function readMounts({ SNAPSHOT_FILE, DATABASE_DIR, STORE_DIR, OUTBOX_DIR }: Paths): Mounts {
  const problems: string[] = [];
  const attempt = <T>(variable: string, path: string, read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      problems.push(`${variable}=${JSON.stringify(path)}: ${reasonOf(error)}`);
      return undefined;
    }
  };
  const snapshot = attempt('SNAPSHOT_FILE', SNAPSHOT_FILE, () => {
    const read = toSnapshot(readFileSync(SNAPSHOT_FILE, 'utf8'));
    if (read === undefined) throw new Error('is not a snapshot that this version reads');
    return read;
  });
  const connection = attempt('DATABASE_DIR', DATABASE_DIR, () => readConnection(DATABASE_DIR));
  const storeConnection = attempt('STORE_DIR', STORE_DIR, () => readStoreConnection(STORE_DIR));
  attempt('OUTBOX_DIR', OUTBOX_DIR, () => accessSync(OUTBOX_DIR, constants.R_OK | constants.W_OK));
  if (snapshot === undefined || connection === undefined || storeConnection === undefined || problems.length > 0)
    throw new Error(listProblems(problems));
  return { instanceUid: snapshot.instance.uid, connection, storeConnection };
}

/** A snapshot of a version that is not ours is no snapshot: the last good one is kept. */
export function toSnapshot(text: string): Snapshot | undefined {
  try {
    return Snapshot.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The Secret is mounted under fixed names, so that this reads no spec. */
function readConnection(folder: string): DatabaseConnection {
  const encode = (name: string) => readFileSync(join(folder, name)).toString('base64');
  const names = ['host', 'username', 'password', 'dbname'] as const;
  const data: Record<string, string> = Object.fromEntries(names.map((name) => [name, encode(name)]));
  const keys = { hostSecret: 'host', usernameSecret: 'username', passwordSecret: 'password', dbnameSecret: 'dbname' };
  for (const name of ['port', 'sslmode', 'sslrootcert']) {
    const text = optional(() => encode(name));
    if (text !== undefined) data[name] = text;
  }
  const ref = { nameRef: 'mounted', keys: { ...keys, ...(data.port === undefined ? {} : { portSecret: 'port' }) } };
  const connection = toDatabaseConnection(ref, data);
  if (connection.ok) return connection.value;
  throw new Error(`${connection.failure.entry} ${connection.failure.problem}`);
}

/** As the database's. A folder without `host` is a mistake, never a store in memory. */
function readStoreConnection(folder: string): StoreConnection {
  const names = ['host', 'port', 'password'] as const;
  const files = names.flatMap((name) => {
    const content = optional(() => readFileSync(join(folder, name)).toString('base64'));
    return content === undefined ? [] : [[name, content] as const];
  });
  const keys = { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' };
  const connection = toStoreConnection({ nameRef: 'mounted', keys }, Object.fromEntries(files));
  if (connection.ok) return connection.value;
  throw new Error(`${connection.failure.entry} ${connection.failure.problem}`);
}

function optional<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
