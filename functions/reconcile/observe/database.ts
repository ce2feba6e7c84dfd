// Does an instance's database answer, in our schema, and what does it hold?
import { toDatabaseConnection } from '#core/connections.ts';
import { toProblem } from '#core/finding.ts';
import {
  type DatabaseConnection,
  DatabaseUnreachable,
  SchemaMissing,
  type StoreConnection,
} from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, InstanceState, Registry, Releases } from '#core/ports/registry.ts';
import { judgeDatabaseSecret } from '#core/rules/instance-secrets.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { ledgerAskedFor } from '../plan/ledger.ts';
import { claimKey, type DatabaseView, type InstanceDraft, type Member, type Problem, pathOf } from '../world.ts';
import { type Read, toReadSecret } from './instance-secrets.ts';
import { type Link, openedKey, stayAway } from './links.ts';
import { type Look, reasonOf } from './look.ts';
import { readSums } from './sums.ts';
import { createWelding } from './welding.ts';

interface ReachedDatabase {
  readonly database: DatabaseView;
  readonly time: Millis;
  readonly adopted?: InstanceState['adopted'];
  readonly released: Releases;
  readonly claims: Map<string, Claim>;
  readonly sums: InstanceDraft['sums'];
  readonly link: Link | undefined;
}

const unreached = (problem: Problem, time: Millis): ReachedDatabase => ({
  database: { ok: false, ...problem },
  time,
  released: new Map(),
  claims: new Map(),
  sums: new Map(),
  link: undefined,
});

export async function reachDatabase(
  look: Look,
  { metadata, spec }: GatewayInstance,
  secrets: ReadonlyMap<string, Read>,
  store: StoreConnection | undefined,
  members: ReadonlyArray<Member>,
): Promise<ReachedDatabase> {
  const { deps, memory, now, acts } = look;
  const found = findDatabase(look, { metadata, spec }, secrets);
  // An instance that is deleted with its Secrets is cleaned up where it last was.
  const last = metadata.deletionTimestamp === undefined ? undefined : memory.databases.get(metadata.uid);
  if ('reason' in found && last === undefined) return unreached(found, now);
  const { registry, where } = 'reason' in found ? (last as NonNullable<typeof last>) : found;
  const key = openedKey(metadata.uid, where, ledgerAskedFor({ metadata }));
  const link = { uid: metadata.uid, registry };
  const away = memory.away.get(metadata.uid);
  if (!look.sweeps && away !== undefined && now < away.until)
    return unreached({ reason: 'DatabaseUnreachable', message: away.message }, now);
  try {
    const claims = await readClaims(registry, metadata.uid, members);
    const { now: time, adopted, released = new Map() } = await registry.instance(metadata.uid);
    // What is settled is booked before it is summed up; a database that is away was found so already.
    const places = 'reason' in found || store === undefined ? undefined : { store, connection: found.connection };
    if (acts && places !== undefined && claims.size > 0) await flush(look, metadata.uid, places);
    const sums = await readSums(registry, members, claims, { now, hash: deps.hash });
    memory.databases.set(metadata.uid, { registry, where });
    if (store !== undefined) memory.stores.set(metadata.uid, store);
    memory.away.delete(metadata.uid);
    const database = { ok: true, message: where, opened: memory.opened.has(key) } as const;
    return { database, time, ...(adopted === undefined ? {} : { adopted }), released, claims, sums, link };
  } catch (error) {
    memory.opened.delete(key);
    const isAway = error instanceof DatabaseUnreachable && !(error instanceof SchemaMissing);
    if (isAway) {
      memory.away.set(metadata.uid, stayAway(away, error.message, now, deps.random));
      return unreached({ reason: 'DatabaseUnreachable', message: error.message }, now);
    }
    // It answers, but not in our schema: a new database, or one that a later version migrates.
    deps.log.info('a database is to be migrated', { instance: pathOf(metadata), why: reasonOf(error) });
    const database = { ok: true, message: where, opened: false, unread: true } as const;
    return { database, time: now, released: new Map(), claims: new Map(), sums: new Map(), link };
  }
}

function findDatabase(
  { deps }: Look,
  { metadata, spec }: Pick<GatewayInstance, 'metadata' | 'spec'>,
  secrets: ReadonlyMap<string, Read>,
): Problem | { readonly registry: Registry & Books; readonly connection: DatabaseConnection; readonly where: string } {
  const connection = databaseConnection({ metadata, spec }, secrets);
  if ('reason' in connection) return connection;
  const { host, port, dbname } = connection;
  const where = `PostgreSQL at ${host.includes(':') ? `[${host}]` : host}:${port}, database "${dbname}"`;
  return { registry: deps.backends.database(connection), connection, where };
}

/** What the Secret says, or what is wrong with it. */
export function databaseConnection(
  { metadata, spec }: Pick<GatewayInstance, 'metadata' | 'spec'>,
  secrets: ReadonlyMap<string, Read>,
): Problem | DatabaseConnection {
  const ref = spec.databaseSecretRef;
  const read = toReadSecret(ref.nameRef, secrets.get(ref.nameRef));
  if ('reason' in read) return read;
  const problem = toProblem(judgeDatabaseSecret(ref, metadata.namespace, read.secret));
  if (problem !== undefined) return problem;
  const connection = toDatabaseConnection(ref, read.secret?.data ?? {});
  // Judged a moment ago: not met.
  return connection.ok ? connection.value : { reason: connection.failure.reason, message: connection.failure.problem };
}

/** By `claimKey`. What a claim says alike with the member that holds it is kept once. */
export async function readClaims(
  registry: Registry,
  instanceUid: string,
  members: Iterable<Member> = [],
): Promise<Map<string, Claim>> {
  const claims = new Map<string, Claim>();
  for (const claim of await registry.claims(instanceUid, createWelding(members)))
    claims.set(claimKey(claim.kind, claim.alias), claim);
  return claims;
}

interface Places {
  readonly store: StoreConnection;
  readonly connection: DatabaseConnection;
}

/** What cannot be booked now is booked later: only the spend in status is older for it. */
async function flush({ deps }: Look, uid: string, { store, connection }: Places): Promise<void> {
  try {
    await deps.backends.flush(uid, store, connection);
  } catch (error) {
    deps.log.warn('not everything settled could be booked', { instanceUid: uid, why: reasonOf(error) });
  }
}
