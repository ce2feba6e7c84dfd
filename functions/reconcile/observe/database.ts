// Does an instance's database answer, in our schema, and what does it hold?
import {
  type DatabaseConnection,
  DatabaseUnreachable,
  SchemaMissing,
  type StoreConnection,
} from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, Registry } from '#core/ports/registry.ts';
import { reasonOf } from '#core/reason.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { ledgerAskedFor } from '../plan/ledger.ts';
import type { Problem } from '../problem.ts';
import { claimKey, type InstanceDraft, type Member, pathOf } from '../world.ts';
import type { Connections } from './instance-secrets.ts';
import { type Link, openedKey, stayAway } from './links.ts';
import type { Look } from './look.ts';
import { readSums } from './sums.ts';
import { createWelding } from './welding.ts';

type ReachedDatabase = Pick<InstanceDraft, 'database' | 'time' | 'adopted' | 'claims' | 'sums'> & {
  readonly link: Link | undefined;
};

const unreached = (problem: Problem, time: Millis): ReachedDatabase => ({
  database: { ok: false, ...problem },
  time,
  claims: new Map(),
  sums: new Map(),
  link: undefined,
});

export async function reachDatabase(
  look: Look,
  { metadata }: GatewayInstance,
  { database: connection, store }: Connections,
  members: ReadonlyArray<Member>,
): Promise<ReachedDatabase> {
  const { deps, memory, now, acts } = look;
  const place = placeOf(look, metadata, connection);
  if ('reason' in place) return unreached(place, now);
  const { registry, where } = place;
  const key = openedKey(metadata.uid, where, ledgerAskedFor({ metadata }));
  const link = { uid: metadata.uid, registry };
  const away = memory.away.get(metadata.uid);
  if (!look.sweeps && away !== undefined && now < away.until)
    return unreached({ reason: 'DatabaseUnreachable', message: away.message }, now);
  try {
    const claims = await readClaims(registry, metadata.uid, members);
    const { now: time, adopted } = await registry.instance(metadata.uid);
    // What is settled is booked before it is summed up; a database that is away was found so already.
    const isFlushable = !('reason' in connection) && !('reason' in store);
    if (acts && isFlushable && claims.size > 0) await flush(look, metadata.uid, { store, connection });
    const sums = await readSums(registry, members, claims, { now, hash: deps.hash });
    memory.databases.set(metadata.uid, place);
    if (!('reason' in store)) memory.stores.set(metadata.uid, store);
    memory.away.delete(metadata.uid);
    const database = { ok: true, message: where, opened: memory.opened.has(key) } as const;
    return { database, time, ...(adopted === undefined ? {} : { adopted }), claims, sums, link };
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
    return { database, time: now, claims: new Map(), sums: new Map(), link };
  }
}

/** An instance that is deleted with its Secrets is cleaned up where it last was. */
function placeOf(
  { deps, memory }: Look,
  { uid, deletionTimestamp }: GatewayInstance['metadata'],
  connection: Problem | DatabaseConnection,
): Problem | { readonly registry: Registry & Books; readonly where: string } {
  if ('reason' in connection) return (deletionTimestamp && memory.databases.get(uid)) || connection;
  const { host, port, dbname } = connection;
  const where = `PostgreSQL at ${host.includes(':') ? `[${host}]` : host}:${port}, database "${dbname}"`;
  return { registry: deps.backends.database(connection), where };
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
