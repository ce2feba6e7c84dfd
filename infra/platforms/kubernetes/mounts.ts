// The environment and the mounts that a gateway needs before it can start; all that is missing is told together.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Result } from '#core/failure/result.ts';
import { readSnapshot, type Snapshot } from '#core/models/snapshot.ts';
import type { DatabaseConnection, StoreConnection } from '#core/ports/backends.ts';
import type { Log } from '#core/ports/telemetry.ts';
import {
  type ConnectionProblem,
  DATABASE_FILES,
  toDatabaseConnection,
  toStoreConnection,
} from '#core/rules/connections.ts';
import { GatewayEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import type { GatewayParts } from '../../runtime/node/gateway.ts';

type Paths = Pick<GatewayEnvironment, 'SNAPSHOT_FILE' | 'DATABASE_DIR' | 'STORE_DIR' | 'JOURNAL_DIR'>;
type Mounts = Pick<GatewayParts, 'instance' | 'connection' | 'storeConnection'>;

/**
 * Throws with one line per variable and mount that is not as it must be. Credentials may be missing: their model
 * entries drop out.
 */
export function readStart(given: Readonly<Record<string, unknown>>) {
  let mounts: Mounts | undefined;
  const environment = readEnvironment(GatewayEnvironment, given, (values) => {
    const problems: string[] = [];
    // Paths are texts with a default: each has a value.
    mounts = readMounts(values as Paths, problems);
    return problems;
  });
  // Without a problem everything was read: not met.
  if (mounts === undefined) throw new Error('the mounts were not read');
  return { environment, mounts };
}

function readMounts(
  { SNAPSHOT_FILE, DATABASE_DIR, STORE_DIR, JOURNAL_DIR }: Paths,
  problems: string[],
): Mounts | undefined {
  const attempt = <T>(variable: string, path: string, read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      problems.push(`${variable}=${JSON.stringify(path)}: ${reasonOf(error)}`);
      return undefined;
    }
  };
  const snapshot = attempt('SNAPSHOT_FILE', SNAPSHOT_FILE, () => {
    const read = readSnapshot(readFileSync(SNAPSHOT_FILE, 'utf8'));
    if (!read.ok) throw new Error(read.failure);
    return read.value;
  });
  const connection = attempt('DATABASE_DIR', DATABASE_DIR, () => readConnection(DATABASE_DIR));
  const storeConnection = attempt('STORE_DIR', STORE_DIR, () => readStoreConnection(STORE_DIR));
  attempt('JOURNAL_DIR', JOURNAL_DIR, () => accessSync(JOURNAL_DIR, constants.R_OK | constants.W_OK));
  if (snapshot === undefined || connection === undefined || storeConnection === undefined) return undefined;
  return { instance: snapshot.instance, connection, storeConnection };
}

/** A snapshot of a version that is not ours is no snapshot: the last good one is kept, and the log says why. */
export const toSnapshot =
  (log: Log) =>
  (text: string): Snapshot | undefined => {
    const read = readSnapshot(text);
    if (!read.ok) log.error('the snapshot is not used', { why: read.failure });
    return read.ok ? read.value : undefined;
  };

/** Secrets are mounted under fixed names, so that this reads no spec. */
function readConnection(folder: string): DatabaseConnection {
  const data = readEntries(folder, DATABASE_FILES);
  const required = {
    hostSecret: 'host',
    usernameSecret: 'username',
    passwordSecret: 'password',
    dbnameSecret: 'dbname',
  };
  const mounted = Object.fromEntries(Object.keys(data).map((name) => [`${name}Secret`, name]));
  return orThrow(toDatabaseConnection({ nameRef: 'mounted', keys: { ...required, ...mounted } }, data));
}

/** A folder without `host` is a mistake, never a store in memory. */
function readStoreConnection(folder: string): StoreConnection {
  const keys = { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' };
  return orThrow(toStoreConnection({ nameRef: 'mounted', keys }, readEntries(folder, ['host', 'port', 'password'])));
}

/** Entries as a Secret has them; those that are not mounted are absent. */
function readEntries(folder: string, names: ReadonlyArray<string>): Readonly<Record<string, string>> {
  const found = names.filter((name) => existsSync(join(folder, name)));
  return Object.fromEntries(found.map((name) => [name, readFileSync(join(folder, name)).toString('base64')]));
}

function orThrow<T>(connection: Result<T, ConnectionProblem>): T {
  if (connection.ok) return connection.value;
  throw new Error(`${connection.failure.key} ${connection.failure.problem}`);
}
