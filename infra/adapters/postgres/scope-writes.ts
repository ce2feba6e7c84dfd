// Writes of scopes: claim, policy and value in one transaction, many scopes in a few statements.
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { type Registry, SAME_PLACE, type ScopeOutcome, type ScopeWrite } from '#core/ports/registry.ts';
import { createBatches } from './batches.ts';
import { millis } from './claims.ts';
import { lockForRecount, recount } from './recount.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';

/** Small enough for the limit, whoever waits for one of the rows; bookings wait for a portion of recounts. */
const PORTION = 500;

export function createScopeWrites(session: Session): Pick<Registry, 'putScope'> {
  const write = (writes: ReadonlyArray<ScopeWrite>) => session.transaction(LIMIT, (query) => putScopes(query, writes));
  const putScope = createBatches(PORTION, async (writes: ReadonlyArray<ScopeWrite>) => {
    try {
      return await write(writes);
    } catch (error) {
      if (writes.length === 1 || error instanceof DatabaseUnreachable) throw error;
      // One of them is refused: each by itself, so that it stops no other.
      return writes.map((one) => write([one]).then(([outcome]) => outcome ?? 'taken'));
    }
  });
  return { putScope };
}

/** Locks in the order of all writers: recounts by instance, claims by alias, then by scope, values by scope. */
async function putScopes(query: Query, all: ReadonlyArray<ScopeWrite>): Promise<ReadonlyArray<ScopeOutcome>> {
  const writes = all.toSorted((one, other) => (one.policy.scopeId < other.policy.scopeId ? -1 : 1));
  const recounted = new Set(
    writes.flatMap(({ recounts, instanceUid }) => (recounts === undefined ? [] : [instanceUid])),
  );
  for (const uid of [...recounted].sort()) await lockForRecount(query, uid);
  for (const write of writes) if (write.proof !== undefined) await adopt(query, write, write.proof);
  await claim(query, writes);
  const locked = await lock(query, writes);
  const current = writes.filter((write) => locked.get(write)?.overtaken === false);
  await writePolicies(
    query,
    current.filter((write) => (locked.get(write)?.generation ?? 0) <= write.generation),
  );
  const refused = await addValues(query, current);
  return all.map((write) => {
    const row = locked.get(write);
    if (row === undefined) return 'taken';
    if (row.overtaken) return 'overtaken';
    return refused.has(write) ? 'value taken' : 'written';
  });
}

/** The unique index decides each race. Everybody asks in the order of aliases, so that no two wait for each other. */
async function claim(query: Query, writes: ReadonlyArray<ScopeWrite>): Promise<void> {
  const asked = writes.toSorted((one, other) => (aliasOf(one) < aliasOf(other) ? -1 : 1));
  await query(CLAIM, [
    asked.map(({ policy }) => policy.scopeId),
    asked.map(({ instanceUid }) => instanceUid),
    asked.map(({ kind }) => kind),
    asked.map(({ alias }) => alias),
    asked.map(({ holder }) => holder.uid),
    asked.map(({ holder }) => holder.namespace),
    asked.map(({ holder }) => holder.name),
    asked.map(({ policy }) => policy.anchor),
  ]);
}

const aliasOf = ({ instanceUid, kind, alias }: ScopeWrite): string => `${instanceUid} ${kind} ${alias}`;

const CLAIM = `
insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, created_at)
select w.scope_id, w.instance_uid, w.kind, w.alias, w.uid, w.namespace, w.name, date_trunc('second', to_timestamp(w.anchor / 1000.0))
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[])
  as w (scope_id, instance_uid, kind, alias, uid, namespace, name, anchor)
on conflict do nothing`;

interface Locked {
  readonly generation: number;
  readonly overtaken: boolean;
}

/** The writes whose holder has the alias in the scope that the policy names. */
async function lock(query: Query, writes: ReadonlyArray<ScopeWrite>): Promise<ReadonlyMap<ScopeWrite, Locked>> {
  const rows = await query<{ place: string; generation: string | null }>(LOCK, [
    writes.map(({ policy }) => policy.scopeId),
    writes.map(({ instanceUid }) => instanceUid),
    writes.map(({ holder }) => holder.uid),
  ]);
  const published = await query<{ place: string }>(PUBLISHED, [
    writes.map(({ policy }) => policy.scopeId),
    writes.map(({ value }) => value?.unless ?? null),
  ]);
  const overtaken = new Set(published.map(({ place }) => place));
  return new Map(
    rows.flatMap(({ place, generation }): Array<[ScopeWrite, Locked]> => {
      const write = writes[Number(place) - 1];
      return write === undefined
        ? []
        : [[write, { generation: Number(generation ?? 0), overtaken: overtaken.has(place) }]];
    }),
  );
}

const LOCK = `
select w.place, c.generation from gateway_operator.claim c
  join unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as w (scope_id, instance_uid, uid, place)
    on c.scope_id = w.scope_id and c.instance_uid = w.instance_uid and c.holder_uid = w.uid
where c.retired_at is null
order by c.scope_id for update of c`;

const PUBLISHED = `
select w.place from unnest($1::uuid[], $2::text[]) with ordinality as w (scope_id, hash, place)
  join gateway_operator.key_value v on v.scope_id = w.scope_id and v.hash = w.hash
where v.retired_at is null and v.not_after is null`;

/** Unchanged rows are not written. */
async function writePolicies(query: Query, writes: ReadonlyArray<ScopeWrite>): Promise<void> {
  for (const [uid, group] of Map.groupBy(writes, ({ instanceUid }) => instanceUid)) {
    const recounts = group.flatMap((write) => write.recounts ?? []);
    if (recounts.length > 0) await recount(query, uid, recounts);
  }
  if (writes.length === 0) return;
  await query(WRITE, [JSON.stringify(writes.map(({ policy, generation }) => ({ policy, generation })))]);
}

const WRITE = `
with wanted as (
  select (w -> 'policy' ->> 'scopeId')::uuid as scope_id, w -> 'policy' as policy, (w ->> 'generation')::bigint as generation,
    array(select jsonb_array_elements_text(coalesce(w -> 'policy' -> 'charges', '[]')))::uuid[] as charges
  from jsonb_array_elements($1::jsonb) as w)
update gateway_operator.claim c set policy = w.policy, charges = w.charges, generation = w.generation
from wanted w where w.scope_id = c.scope_id and (c.policy, c.generation) is distinct from (w.policy, w.generation)`;

/**
 * Answers the writes whose value another live scope has, as the index decides. A value may be the scope's own: live, so there is nothing to do,
 * or from before, and revived at its age. The claims are locked, so none retires meanwhile and leaves a live value behind.
 */
async function addValues(query: Query, writes: ReadonlyArray<ScopeWrite>): Promise<ReadonlySet<ScopeWrite>> {
  const valued = writes.flatMap((write) => (write.value === undefined ? [] : [{ write, ...write.value }]));
  if (valued.length === 0) return new Set();
  const scopes = valued.map(({ write }) => write.policy.scopeId);
  const hashes = valued.map(({ hash }) => hash);
  const revived = await query<{ scope_id: ScopeId; created_at: string }>(REVIVE, [scopes, hashes]);
  const ages = new Map(revived.map((row) => [row.scope_id, row.created_at]));
  const asked = valued.map((value) => value.asked ?? null);
  await query(ADD, [scopes, hashes, asked, scopes.map((scopeId) => ages.get(scopeId) ?? null)]);
  const live = await query<{ scope_id: ScopeId }>(LIVE, [scopes, hashes]);
  const added = new Set(live.map(({ scope_id }) => scope_id));
  return new Set(valued.flatMap(({ write }) => (added.has(write.policy.scopeId) ? [] : [write])));
}

const REVIVE = `
delete from gateway_operator.key_value v using unnest($1::uuid[], $2::text[]) as w (scope_id, hash)
where v.scope_id = w.scope_id and v.hash = w.hash and v.retired_at is not null
returning v.scope_id, ${millis('v.created_at')} as created_at`;

/** A new value is younger than all before it, also when the clock was set back. */
const ADD = `
insert into gateway_operator.key_value (scope_id, hash, asked, created_at)
select w.scope_id, w.hash, coalesce(w.asked, before.asked),
  coalesce(to_timestamp(w.created_at / 1000.0),
    greatest(date_trunc('milliseconds', clock_timestamp()), before.created_at + interval '1 millisecond'))
from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[]) as w (scope_id, hash, asked, created_at)
  cross join lateral (
    select (array_agg(v.asked order by v.created_at desc, v.hash desc))[1] as asked, max(v.created_at) as created_at
    from gateway_operator.key_value v where v.scope_id = w.scope_id and v.retired_at is null) before
on conflict do nothing`;

const LIVE = `
select v.scope_id from gateway_operator.key_value v
  join unnest($1::uuid[], $2::text[]) as w (scope_id, hash) on v.scope_id = w.scope_id and v.hash = w.hash
where v.retired_at is null`;

/** Of two that prove the same value the first takes the claim over: the other finds a holder that it did not expect. */
async function adopt(
  query: Query,
  { instanceUid, kind, alias, holder, policy }: ScopeWrite,
  proof: string,
): Promise<void> {
  const { uid, namespace, name } = holder;
  if (kind === 'key') {
    const at = [instanceUid, alias, uid, namespace, name, proof];
    await query(ADOPT, at);
    await query(MOVE, at);
  } else if (proof === SAME_PLACE)
    await query(
      `update gateway_operator.claim set holder_uid = $3, generation = null where scope_id = $1 and instance_uid = $2
         and retired_at is null and holder_namespace = $4 and holder_name = $5 and holder_uid <> $3`,
      [policy.scopeId, instanceUid, uid, namespace, name],
    );
}

/** The scope of a value that lives. */
const PROVEN = `select v.scope_id from gateway_operator.key_value v where v.hash = $6 and v.retired_at is null
  and (v.not_after is null or v.not_after > clock_timestamp())`;

const ADOPT = `
update gateway_operator.claim set holder_uid = $3, holder_namespace = $4, holder_name = $5, generation = null
where instance_uid = $1 and kind = 'key' and alias = $2 and retired_at is null and holder_uid <> $3 and scope_id in (${PROVEN})`;

/** From wherever it is in this database: a key that works on without an object goes to whoever has its value. */
const MOVE = `
update gateway_operator.claim set instance_uid = $1, alias = $2, holder_uid = $3, holder_namespace = $4, holder_name = $5, generation = null
where kind = 'key' and retired_at is null and policy ? 'retained' and scope_id in (${PROVEN})
  and (instance_uid, alias) <> ($1, $2) and not exists (select 1 from gateway_operator.claim mine
    where mine.instance_uid = $1 and mine.kind = 'key' and mine.alias = $2 and mine.retired_at is null)`;
