// The database of an instance: whether it answers with our schema, and its rows of the instance.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonAndCausesOf, reasonOf } from '#core/failure/error-text.ts';
import {
  type DatabaseConnection,
  DatabaseUnreachable,
  SchemaMissing,
  type StoreConnection,
} from '#core/ports/backends.ts';
import type { LedgerReader } from '#core/ports/ledger-rows.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { Alias, Claim } from '#core/ports/registry.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { budgetedScopes, perKeyScope, windowOf } from '../key/budget.ts';
import type { DatabaseLink } from '../memory.ts';
import { claimKey, type InstanceView, type Path, type Problem, pathOf, retainedSecret, sumKey } from '../world.ts';
import type { Observation, ObserveContext } from './context.ts';

/** The addresses of database and counter store, or the problems of their Secrets. */
export interface Connections {
  readonly database: Problem | DatabaseConnection;
  readonly store: Problem | StoreConnection;
}

type DatabaseObservation = Pick<InstanceView, 'database' | 'databaseNow' | 'adopted' | 'hasClaims' | 'claims' | 'sums'>;

/**
 * `link`: absent if the database cannot be reached. `aliases`: those of the scope objects. If not all claims are read,
 * theirs are: a trigger reads only its own of a hundred thousand.
 */
export async function reachDatabase(
  context: ObserveContext,
  { metadata }: GatewayInstance,
  { connections, aliases, isComplete }: ClaimsToRead & { readonly connections: Connections },
): Promise<DatabaseObservation & { readonly link?: DatabaseLink }> {
  const { deps, memory, now } = context;
  const nothing = { databaseNow: now, hasClaims: false, claims: new Map(), sums: new Map() };
  const connection = connectionOf(context, metadata, connections.database);
  if ('reason' in connection) return { database: { ok: false, ...connection }, ...nothing };
  const link = linkTo(context, metadata.uid, connection);
  const { uid, registry, where } = link;
  try {
    const { now: databaseNow, isOpen, predecessor, hasClaims, place } = await registry.instance(uid);
    const claims = await readClaims(link, { aliases, isComplete, isForPoliciesOnly: context.all.isForPoliciesOnly });
    // A trigger does not wait for the counters of an instance, of which there may be a hundred thousand: an edit is in
    // force first, and the spend in status may lack requests that are settled but not yet booked.
    if (claims.size > 0 && context.all.complete === 'all') await flush(context, metadata, connections);
    const claimOfNamespace = (name: string) => claims.get(claimKey('namespace', name));
    const sums = await readSums(registry, claims.values(), { ...context, claimOfNamespace });
    const { store } = connections;
    memory.instances.set(uid, {
      database: connection,
      store: 'reason' in store ? memory.instances.get(uid)?.store : store,
    });
    const database = { ok: true, message: where, isKnown: true, isRecorded: place !== undefined, isOpen } as const;
    return { database, databaseNow, hasClaims, claims, sums, ...(predecessor && { adopted: predecessor }), link };
  } catch (error) {
    if (error instanceof DatabaseUnreachable && !(error instanceof SchemaMissing))
      return { database: { ok: false, reason: 'DatabaseUnreachable', message: error.message }, ...nothing };
    // The database answers without our schema: it is new, or belongs to another version.
    deps.log.info('a database lacks the schema of this version', { instance: pathOf(metadata), why: reasonOf(error) });
    const database = { ok: true, message: where, isKnown: false, isRecorded: false, isOpen: false } as const;
    return { database, ...nothing, link };
  }
}

interface ClaimsToRead {
  readonly aliases: ReadonlyArray<Alias>;
  readonly isComplete: boolean;
}

/** Claims by `claimKey`. Retained keys that a scope object may adopt are read whole. */
async function readClaims(
  { uid, registry }: DatabaseLink,
  { aliases, isComplete, isForPoliciesOnly }: ClaimsToRead & { readonly isForPoliciesOnly: boolean },
) {
  const byKey = (found: ReadonlyArray<Claim>) =>
    found.map((claim) => [claimKey(claim.kind, claim.alias), claim] as const);
  const namespaces = isForPoliciesOnly ? await registry.namespaceClaims(uid) : [];
  if (!isComplete) return new Map(byKey([...namespaces, ...(await registry.claimsOf(uid, aliases))]));
  const claims = new Map(byKey(await registry.claims(uid)));
  const aliasesToRead = aliases.filter(({ kind, alias }) => {
    const claim = claims.get(claimKey(kind, alias));
    return claim !== undefined && retainedSecret(claim) !== undefined;
  });
  const whole = aliasesToRead.length === 0 ? [] : await registry.claimsOf(uid, aliasesToRead);
  for (const [key, claim] of byKey(whole)) claims.set(key, claim);
  return claims;
}

/** An instance that is deleted together with its Secrets is closed in the database where it last was. */
function connectionOf(
  { memory }: ObserveContext,
  { uid, deletionTimestamp }: GatewayInstance['metadata'],
  connection: Problem | DatabaseConnection,
): Problem | DatabaseConnection {
  if (!('reason' in connection) || deletionTimestamp === undefined) return connection;
  return memory.instances.get(uid)?.database ?? connection;
}

function linkTo({ deps }: ObserveContext, uid: string, connection: DatabaseConnection): DatabaseLink {
  const { host, port, dbname } = connection;
  const where = `PostgreSQL at ${host.includes(':') ? `[${host}]` : host}:${port}, database "${dbname}"`;
  return { uid, registry: deps.backends.database(connection), where };
}

/** A flush waits for flushes of other instances on its database, whose counter stores may hang. */
const MAX_FLUSH: Millis = 15_000;

/**
 * Books settled requests before their sums are read. Requests that cannot be booked now are booked later; until then
 * only the spend in status is older.
 */
async function flush(
  { deps, isDry, roundRobin }: ObserveContext,
  { uid, namespace, name }: GatewayInstance['metadata'],
  { database, store }: Connections,
): Promise<void> {
  if (isDry || 'reason' in database || 'reason' in store) return;
  try {
    const cursor = roundRobin.cursor(`counters of ${uid}`);
    const flushed = deps.backends.flush({ uid, namespace, name }, { store, database, cursor });
    await withTimeout(deps.timer, MAX_FLUSH, 'the store', flushed);
  } catch (error) {
    deps.log.warn('cannot book all settled charges', { instanceUid: uid, why: reasonAndCausesOf(error) });
  }
}

interface SumContext extends Pick<ObserveContext, 'now' | 'deps'> {
  readonly claimOfNamespace: (name: string) => Claim | undefined;
}

/**
 * The maximum windows that are computed without a pause, in which other work continues: a window that is not remembered
 * takes up to 20 µs, and a tenant's database may have any number of them.
 */
const MAX_WINDOWS = 5000;

/** The spend of these claims' scopes in their current windows, by the policies in force: one query for all of them. */
async function readSums(
  database: LedgerReader,
  claims: Iterable<Claim>,
  { now, deps: { hash, timer }, claimOfNamespace }: SumContext,
): Promise<Map<string, Nano>> {
  const windows: ScopeWindow[] = [];
  let computed = 0;
  for (const claim of claims) {
    const namespace = claim.kind === 'key' ? claimOfNamespace(claim.holder.namespace) : undefined;
    for (const scope of [...budgetedScopes(claim), perKeyScope(claim, namespace, hash)])
      if (scope !== undefined)
        windows.push({ scopeId: scope.scopeId, window: windowOf(scope.budget, claim.anchor, now) });
    if (windows.length - computed < MAX_WINDOWS) continue;
    computed = windows.length;
    await new Promise<void>((resolve) => timer(0, resolve));
  }
  const sums = windows.length === 0 ? [] : await database.sums(windows);
  const spent = sums.filter((sum) => sum.spent !== 0n);
  return new Map(spent.map(({ scopeId, window, spent: amount }) => [sumKey(scopeId, window), amount]));
}

/** Reads again the rows of some aliases in the databases of instances. */
export async function observeClaims(
  context: ObserveContext,
  { world, links }: Observation,
  touched: ReadonlyArray<Alias & { readonly instance: Path }>,
): Promise<void> {
  const byInstance = Map.groupBy(touched, ({ instance }) => instance);
  await mapConcurrent(byInstance, async ([path, aliases]) => {
    const [view, link] = [world.instances.get(path), links.get(path)];
    if (view === undefined || link === undefined) return;
    const aliasesToRead = new Map(aliases.map((one) => [claimKey(one.kind, one.alias), one]));
    try {
      const found = await link.registry.claimsOf(link.uid, [...aliasesToRead.values()]);
      const namespaces = new Map(found.flatMap((one) => (one.kind === 'namespace' ? [[one.alias, one]] : [])));
      const claimOfNamespace = (name: string) => namespaces.get(name) ?? view.claims.get(claimKey('namespace', name));
      const spent = await readSums(link.registry, found, { ...context, claimOfNamespace });
      // Written in place: there may be a hundred thousand claims, and only observing writes them.
      const [claims, sums] = [view.claims as Map<string, Claim>, view.sums as Map<string, Nano>];
      for (const key of aliasesToRead.keys()) claims.delete(key);
      // A claim that was renamed is still there by its previous alias.
      const renamed = new Set(found.flatMap(({ kind, scopeId }) => (kind === 'key' ? [] : [scopeId])));
      if (renamed.size > 0) for (const [key, { scopeId }] of claims) if (renamed.has(scopeId)) claims.delete(key);
      for (const claim of found) claims.set(claimKey(claim.kind, claim.alias), claim);
      for (const [key, sum] of spent) sums.set(key, sum);
    } catch (error) {
      const problem = { reason: 'DatabaseUnreachable', message: reasonOf(error) } as const;
      world.instances.set(path, { ...view, database: { ok: false, ...problem } });
    }
  });
}
