// Writes of scopes: claim, policy and value in one transaction, many scopes in a few statements.
import { createHash } from 'node:crypto';
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { digestOf, toStoredText } from '#core/ports/policy-digest.ts';
import {
  MAX_RETAINED,
  type Registry,
  SAME_OBJECT,
  SAME_PLACE,
  type ScopeOutcome,
  type ScopeWrite,
} from '#core/ports/registry.ts';
import { createCallMerger } from './call-merger.ts';
import { isStatementTimeout } from './database-error.ts';
import { countEdges, type Edges, lockForRecount, writeRecounts } from './recount.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';

/** The maximum writes per transaction: few enough for the time limit of statements that wait for a row. */
const PORTION = 500;
/** The maximum concurrent writes with recounts: they leave connections for the other writes. */
const RECOUNTING = 2;
/** The maximum namespaces whose windows one transaction recounts: a key policy may apply to thousands. */
const NAMESPACES_PORTION = 25;

/** The previous holders of a claim that PostgreSQL remembers: as many as its Secret. */
const MAX_PREVIOUS_HOLDERS = 8;

const hash: Hash = (text) => createHash('sha256').update(text).digest('hex');

export function createScopeWrites(session: Session): Pick<Registry, 'putScope'> {
  const write = (writes: ReadonlyArray<ScopeWrite>) => session.transaction(LIMIT, (query) => putScopes(query, writes));
  const merged = createCallMerger(PORTION, (writes: ReadonlyArray<ScopeWrite>) => putAll(writes, write));
  const ofNamespaces = createCallMerger(NAMESPACES_PORTION, (writes: ReadonlyArray<ScopeWrite>) =>
    putAll(writes, write),
  );
  const recounting = createFairLimiter(RECOUNTING, Number.POSITIVE_INFINITY, { maxOwn: 1 });
  let asked = 0;
  let failure: { readonly error: unknown; readonly asked: number } | undefined;
  /** Fails without a call if another write found the database unreachable meanwhile: each call would cost a timeout. */
  const writeOne = async (one: ScopeWrite, number: number): Promise<ScopeOutcome> => {
    if (failure !== undefined && number <= failure.asked) throw failure.error;
    try {
      const [outcome] = await write([one]);
      return outcome as ScopeOutcome;
    } catch (error) {
      if (error instanceof DatabaseUnreachable && !isStatementTimeout(error.cause)) failure = { error, asked };
      throw error;
    }
  };
  return {
    // A recount may take seconds, and a tenant decides how many there are. Each has a transaction of its own, so that it
    // neither delays nor fails other writes, and namespaces take turns. A recount of a namespace itself comes from an edit
    // by the owner of the instance, not by a tenant, so that several share a transaction.
    putScope: (one) => {
      if ((one.recounts ?? []).length === 0) return merged(one);
      if (one.kind === 'namespace') return ofNamespaces(one);
      asked += 1;
      const number = asked;
      return recounting.run(one.holder.namespace, () => writeOne(one, number));
    },
  };
}

/**
 * If PostgreSQL refuses some of the writes, they are found by halving the portion, and the other writes continue. The first portion that
 * finds the database unreachable is the last one: each of the others would cost a timeout too.
 */
async function putAll(
  writes: ReadonlyArray<ScopeWrite>,
  write: (portion: ReadonlyArray<ScopeWrite>) => Promise<ReadonlyArray<ScopeOutcome>>,
): Promise<ReadonlyArray<Promise<ScopeOutcome>>> {
  const outcomes: Promise<ScopeOutcome>[] = [];
  const remaining = [writes];
  for (let portion = remaining.shift(); portion !== undefined; portion = remaining.shift()) {
    try {
      outcomes.push(...(await write(portion)).map(async (outcome) => outcome));
    } catch (error) {
      const half = Math.ceil(portion.length / 2);
      if (error instanceof DatabaseUnreachable)
        return [...outcomes, ...[portion, ...remaining].flat().map(() => toRejection(error))];
      if (portion.length === 1) outcomes.push(toRejection(error));
      else remaining.unshift(portion.slice(0, half), portion.slice(half));
    }
  }
  return outcomes;
}

/** A rejection that waits for the other writes of its batch. */
function toRejection(error: unknown): Promise<never> {
  const rejection = Promise.reject(error);
  rejection.catch(() => undefined);
  return rejection;
}

/** Takes locks in the order of all writers: recounts by instance, claims by alias, then by scope, values by scope. */
async function putScopes(query: Query, writes: ReadonlyArray<ScopeWrite>): Promise<ReadonlyArray<ScopeOutcome>> {
  const recounts = writes.flatMap((write) => write.recounts ?? []);
  const edges = recounts.length === 0 ? undefined : await countEdges(query, recounts);
  const recounted = writes.filter((write) => (write.recounts ?? []).length > 0).map(({ instanceUid }) => instanceUid);
  for (const uid of [...new Set(recounted)].sort()) await lockForRecount(query, uid);
  for (const write of writes) if (write.proof !== undefined) await adopt(query, write, write.proof);
  const renames = writes.filter(({ kind, proof }) => kind !== 'key' && proof === SAME_OBJECT);
  if (renames.length > 0) await rename(query, renames);
  const rows = [toRows(writes)];
  await query(CLAIM, rows);
  const locked = await query<LockedRow>(LOCK, rows);
  const refusing = await query<{ index: number }>(OVERTAKEN, rows);
  const generations = new Map(locked.map(({ index, generation }) => [index, Number(generation ?? 0)]));
  const overtaken = new Set(refusing.map(({ index }) => index));
  const tooMany = await findTooMany(query, writes, locked);
  const refusals = writes.map(({ generation, overwrites }, index): ScopeOutcome | undefined => {
    const storedGeneration = generations.get(index);
    if (storedGeneration === undefined) return 'taken';
    if (tooMany.has(index)) return 'too many';
    if (overtaken.has(index)) return 'overtaken';
    return storedGeneration > generation && storedGeneration !== overwrites ? { later: storedGeneration } : undefined;
  });
  const current = writes.filter((_, index) => refusals[index] === undefined);
  await writePolicies(query, current, edges);
  const values = current.filter(({ value }) => value !== undefined);
  const refused = await addValues(query, values);
  return writes.map((write, index) => {
    const refusal = refusals[index];
    if (refusal !== undefined) return refusal;
    return refused.has(write.policy.scopeId) ? 'value taken' : 'written';
  });
}

interface LockedRow {
  readonly index: number;
  readonly generation: string | null;
  readonly isRetained: boolean;
}

/** The writes that would retain more keys of a namespace than it may have. Keys that are retained already stay so. */
async function findTooMany(
  query: Query,
  writes: ReadonlyArray<ScopeWrite>,
  locked: ReadonlyArray<LockedRow>,
): Promise<ReadonlySet<number>> {
  const isNew = new Set(locked.filter(({ isRetained }) => !isRetained).map(({ index }) => index));
  const places = [...writes.keys()].filter((index) => {
    const { policy } = writes[index] ?? {};
    return isNew.has(index) && policy !== undefined && 'retained' in policy;
  });
  const toGroup = (index: number) => JSON.stringify([writes[index]?.instanceUid, writes[index]?.holder.namespace]);
  const tooMany = new Set<number>();
  for (const [group, own] of Map.groupBy(places, toGroup)) {
    const [{ count } = { count: 0 }] = await query<{ count: number }>(RETAINED, [...JSON.parse(group), MAX_RETAINED]);
    for (const index of own.slice(MAX_RETAINED - count)) tooMany.add(index);
  }
  return tooMany;
}

const RETAINED = `
select count(*)::integer as count from (select 1 from gateway_operator.claim
  where instance_uid = $1 and kind = 'key' and holder_namespace = $2 and retired_at is null and digest ? 'retained'
  limit $3) as retained`;

/** The writes as JSON, which `WRITES` reads as a table. */
function toRows(writes: ReadonlyArray<ScopeWrite>): string {
  const rows = writes.map(({ instanceUid: instance_uid, kind, alias, holder, policy, value }, index) => ({
    index,
    scope_id: policy.scopeId,
    instance_uid,
    kind,
    alias,
    anchor: policy.anchor,
    ...value,
    holder_uid: holder.uid,
    holder_namespace: holder.namespace,
    holder_name: holder.name,
  }));
  return JSON.stringify(rows);
}

const WRITES = `jsonb_to_recordset($1::jsonb) as w (index integer, scope_id uuid, instance_uid text, kind text, alias text,
  anchor bigint, holder_uid text, holder_namespace text, holder_name text, hash text, rotation text,
  "unlessLive" text, "unlessEnded" text)`;

/** The unique index decides each race. All writers insert in the order of aliases, so that they cannot deadlock. */
const CLAIM = `
insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, created_at)
select w.scope_id, w.instance_uid, w.kind, w.alias, w.holder_uid, w.holder_namespace, w.holder_name,
  date_trunc('second', to_timestamp(w.anchor / 1000.0))
from ${WRITES} order by w.instance_uid, w.kind, w.alias
on conflict do nothing`;

/** Locks the claims of writes whose holder has the alias in the scope that the policy names. */
const LOCK = `
select w.index, c.generation, coalesce(c.digest ? 'retained', false) as "isRetained" from gateway_operator.claim c
  join ${WRITES} on c.scope_id = w.scope_id and c.instance_uid = w.instance_uid and c.holder_uid = w.holder_uid
where c.retired_at is null
order by c.scope_id for update of c`;

const OVERTAKEN = `
select w.index from ${WRITES}
  join gateway_operator.key_value v on v.scope_id = w.scope_id and v.hash in (w."unlessLive", w."unlessEnded")
where case when v.hash = w."unlessEnded" then v.not_after is not null or (v.retired_at is not null and exists (
    select 1 from gateway_operator.key_value o where o.scope_id = v.scope_id and o.retired_at is null and o.not_after is null))
  else v.retired_at is null and v.not_after is null end`;

async function writePolicies(query: Query, writes: ReadonlyArray<ScopeWrite>, edges: Edges | undefined): Promise<void> {
  if (writes.length === 0) return;
  const recounts = writes.flatMap((write) => write.recounts ?? []);
  if (edges !== undefined && recounts.length > 0) await writeRecounts(query, recounts, edges);
  let [rows, size] = [[] as string[], 0];
  const write = async () => {
    await query(WRITE, [`[${rows.join(',')}]`]);
    [rows, size] = [[], 0];
  };
  for (const { policy, generation } of writes) {
    const row = toStoredText(JSON.stringify({ policy, digest: digestOf(policy, hash), generation }));
    rows.push(row);
    size += row.length;
    if (size >= MAX_TEXT) await write();
  }
  if (rows.length > 0) await write();
}

/**
 * Characters of policies after which a statement ends: whoever may write a VirtualKey decides how large its policy is.
 */
const MAX_TEXT = 4 * 1024 * 1024;

/** Unchanged rows are not written. A policy without `kind` has only some members: the others stay as they are. */
const WRITE = `
with written as (
  select (policy ->> 'scopeId')::uuid as scope_id, policy, digest, generation, policy ? 'kind' as is_whole
  from jsonb_to_recordset($1::jsonb) as w (policy jsonb, digest jsonb, generation bigint)),
desired as (
  select scope_id, w.generation, case when is_whole then w.policy else c.policy || w.policy end as policy,
    case when is_whole then w.digest else c.digest || w.digest end as digest
  from written w join gateway_operator.claim c using (scope_id))
update gateway_operator.claim c set policy = w.policy, digest = w.digest, generation = w.generation,
  charged_scope_ids = array(select jsonb_array_elements_text(coalesce(w.policy -> 'chargedScopeIds', '[]')))::uuid[]
from desired w where w.scope_id = c.scope_id
  and (c.policy, c.digest, c.generation) is distinct from (w.policy, w.digest, w.generation)`;

/**
 * Returns the scopes whose value another live scope has, as the index decides. The scope itself may have the value: a
 * live value does not change, and a retired value becomes live again and keeps its age. The claims are locked, so that
 * no claim retires meanwhile and leaves a live value.
 */
async function addValues(query: Query, writes: ReadonlyArray<ScopeWrite>): Promise<ReadonlySet<ScopeId>> {
  if (writes.length === 0) return new Set();
  const rows = toRows(writes);
  const revived = await query<{ values: string }>(REVIVE, [rows]);
  await query(ADD_VALUES, [rows, revived[0]?.values ?? '[]']);
  return new Set((await query<{ scope_id: ScopeId }>(REFUSED, [rows])).map(({ scope_id }) => scope_id));
}

const REVIVE = `
with dead as (
  delete from gateway_operator.key_value v using ${WRITES}
  where v.scope_id = w.scope_id and v.hash = w.hash and v.retired_at is not null
  returning v.scope_id, v.created_at)
select coalesce(json_agg(dead), '[]')::text as values from dead`;

/** A new value is younger than all previous values, also if the clock was set back. */
const ADD_VALUES = `
insert into gateway_operator.key_value (scope_id, hash, rotation, created_at)
select w.scope_id, w.hash, coalesce(w.rotation, before.rotation), coalesce(dead.created_at,
  greatest(date_trunc('milliseconds', clock_timestamp()), before.created_at + interval '1 millisecond'))
from ${WRITES}
  left join json_to_recordset($2::json) as dead (scope_id uuid, created_at timestamptz) using (scope_id)
  cross join lateral (
    select (array_agg(v.rotation order by v.created_at desc, v.hash desc))[1] as rotation, max(v.created_at) as created_at
    from gateway_operator.key_value v where v.scope_id = w.scope_id and v.retired_at is null) before
order by w.scope_id
on conflict do nothing`;

const REFUSED = `
select w.scope_id from ${WRITES} where not exists (select 1 from gateway_operator.key_value v
  where v.scope_id = w.scope_id and v.hash = w.hash and v.retired_at is null)`;

/**
 * If two writes prove the same value, the first takes the claim over; the second finds a holder that it did not expect.
 */
async function adopt(query: Query, write: ScopeWrite, proof: string): Promise<void> {
  const { instanceUid, kind, alias, holder, policy, formerHolders = [] } = write;
  const { uid, namespace, name } = holder;
  if (kind === 'key') {
    const values = [instanceUid, alias, uid, namespace, name, proof, formerHolders];
    await query(ADOPT_KEY, values);
    await query(MOVE_RETAINED, values);
  } else if (proof === SAME_PLACE) {
    await query(ADOPT_IN_PLACE, [policy.scopeId, instanceUid, uid, namespace, name]);
  }
}

/** Gives the claims of Users and Teams the alias that their object has now. Of two that want one alias, one gets it. */
async function rename(query: Query, writes: ReadonlyArray<ScopeWrite>): Promise<void> {
  const instances = new Set(writes.map(({ instanceUid }) => instanceUid));
  const kinds = new Set(writes.map(({ kind }) => kind));
  await query(RENAME, [toRows(writes), [...instances], [...kinds]]);
}

/** Reads the claims of the instance by the index of aliases: no index has the holder. */
const RENAME = `
with live as materialized (
  select scope_id, instance_uid, kind, alias, holder_uid, created_at from gateway_operator.claim
  where instance_uid = any($2::text[]) and kind = any($3::text[]) and retired_at is null),
renamed as (
  select distinct on (w.instance_uid, w.kind, w.alias) c.scope_id, w.alias
  from ${WRITES} join live c using (instance_uid, kind, holder_uid)
  where c.alias <> w.alias and not exists (select 1 from gateway_operator.claim other
    where other.instance_uid = w.instance_uid and other.kind = w.kind and other.alias = w.alias and other.retired_at is null)
  order by w.instance_uid, w.kind, w.alias, c.created_at, c.scope_id)
update gateway_operator.claim c set alias = r.alias from renamed r where c.scope_id = r.scope_id`;

const ADOPT_IN_PLACE = `
update gateway_operator.claim set holder_uid = $3, generation = null where scope_id = $1 and instance_uid = $2
  and retired_at is null and holder_namespace = $4 and holder_name = $5 and holder_uid <> $3`;

/** The scope of a live value. */
const PROVEN = `select v.scope_id from gateway_operator.key_value v where v.hash = $6 and v.retired_at is null
  and (v.not_after is null or v.not_after > clock_timestamp())`;

/** A move between instances may be of the same VirtualKey. */
const PREVIOUS_HOLDERS = `previous_holders = case when holder_uid = $3 then previous_holders
  else (array_prepend(holder_uid, array_remove(previous_holders, $3)))[1:${MAX_PREVIOUS_HOLDERS}] end`;

const ADOPT_KEY = `
update gateway_operator.claim set holder_uid = $3, holder_namespace = $4, holder_name = $5, ${PREVIOUS_HOLDERS}, generation = null
where instance_uid = $1 and kind = 'key' and alias = $2 and retired_at is null and holder_uid <> $3 and scope_id in (${PROVEN})
  and (holder_namespace = $4 or holder_uid = any($7::text[])
    or (previous_holders && $7::text[] and not coalesce(policy ? 'retained', false)))`;

/**
 * Moves a retained VirtualKey, wherever it is in this database, to the VirtualKey that proves its value. Clusters may
 * share the database, and have namespaces of the same name.
 */
const MOVE_RETAINED = `
update gateway_operator.claim c set instance_uid = $1, alias = $2, holder_uid = $3, holder_namespace = $4, holder_name = $5,
  ${PREVIOUS_HOLDERS}, generation = null
where kind = 'key' and retired_at is null and policy ? 'retained' and scope_id in (${PROVEN})
  and (holder_uid = any($7::text[]) or (holder_namespace = $4 and
    (select i.cluster from gateway_operator.instance i where i.uid = c.instance_uid) is not distinct from
    (select i.cluster from gateway_operator.instance i where i.uid = $1)))
  and (instance_uid, alias) <> ($1, $2) and not exists (select 1 from gateway_operator.claim mine
    where mine.instance_uid = $1 and mine.kind = 'key' and mine.alias = $2 and mine.retired_at is null)`;
