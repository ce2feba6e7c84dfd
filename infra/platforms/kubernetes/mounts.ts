// The environment and the mounts that a gateway needs before it can start. All that is missing is listed together.
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
  STORE_FILES,
  toDatabaseConnection,
  toStoreConnection,
} from '#core/rules/connections.ts';
import { GatewayEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import type { GatewayParts } from '../../runtime/node/gateway.ts';

type Paths = Pick<GatewayEnvironment, 'SNAPSHOT_FILE' | 'DATABASE_DIR' | 'STORE_DIR' | 'JOURNAL_DIR'>;
type Mounts = Pick<GatewayParts, 'instance' | 'connection' | 'storeConnection'>;

/**
 * Throws with one line for each invalid variable and mount. Credentials may be missing: their model entries are left
 * out.
 */
export function readStart(given: Readonly<Record<string, unknown>>) {
  let mounts: Mounts | undefined;
  const environment = readEnvironment(GatewayEnvironment, given, (values) => {
    const problems: string[] = [];
    // Paths are texts with a default: each has a value.
    mounts = readMounts(values as Paths, problems);
    return problems;
  });
  // Everything was read if there is no problem, so this cannot happen.
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

/** Reads the mounted Secrets again, each at most once a second. Throws while one of them cannot be used. */
export function createLogins(
  { DATABASE_DIR, STORE_DIR }: Pick<Paths, 'DATABASE_DIR' | 'STORE_DIR'>,
  now: () => number,
) {
  return {
    database: atMostEvery(LOOK_AGAIN_AFTER, now, () => readConnection(DATABASE_DIR)),
    store: atMostEvery(LOOK_AGAIN_AFTER, now, () => readStoreConnection(STORE_DIR)),
  };
}

const LOOK_AGAIN_AFTER = 1_000;

/** The last value, or a new one if that is older than so many milliseconds. */
function atMostEvery<T>(millis: number, now: () => number, read: () => T): () => T {
  let last: { readonly at: number; readonly value: T } | undefined;
  return () => {
    // A clock that was ahead must not keep it.
    if (last === undefined || Math.abs(now() - last.at) >= millis) last = { at: now(), value: read() };
    return last.value;
  };
}

/** The snapshot. One of another version is refused: the last good one is kept, and the reason is logged. */
export const toSnapshot =
  (log: Log) =>
  (text: string): Snapshot | undefined => {
    const read = readSnapshot(text);
    if (!read.ok) log.error('the snapshot is not used', { why: read.failure });
    return read.ok ? read.value : undefined;
  };

/** The files of a mounted Secret. Their names are fixed, so that no spec is read. */
function readConnection(folder: string): DatabaseConnection {
  const data = readEntries(folder, DATABASE_FILES);
  const required = {
    hostSecret: 'host',
    usernameSecret: 'username',
    passwordSecret: 'password',
    dbnameSecret: 'dbname',
  };
  return orThrow(toDatabaseConnection({ nameRef: 'mounted', keys: { ...required, ...keysOf(data) } }, data));
}

/** The connection of the counter store. A folder without `host` is an error, never a store in memory. */
function readStoreConnection(folder: string): StoreConnection {
  const data = readEntries(folder, STORE_FILES);
  const required = { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' };
  return orThrow(toStoreConnection({ nameRef: 'mounted', keys: { ...required, ...keysOf(data) } }, data));
}

/** The `keys` of a reference whose Secret has one key for each file, with the file's name. */
const keysOf = (data: object) => Object.fromEntries(Object.keys(data).map((name) => [`${name}Secret`, name]));

/** The keys of a Secret with their values in base64; keys that are not mounted are absent. */
function readEntries(folder: string, names: ReadonlyArray<string>): Readonly<Record<string, string>> {
  const found = names.filter((name) => existsSync(join(folder, name)));
  return Object.fromEntries(found.map((name) => [name, readFileSync(join(folder, name)).toString('base64')]));
}

function orThrow<T>(connection: Result<T, ConnectionProblem>): T {
  if (connection.ok) return connection.value;
  throw new Error(`${connection.failure.key} ${connection.failure.problem}`);
}
