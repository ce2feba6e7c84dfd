// Retired claims and key values that nothing needs any more: they are deleted once a day, after the old sums.
import type { Millis } from '#core/ports/money.ts';
import { BACKGROUND_LIMIT as LIMIT, type Session } from './session.ts';
import { USAGE_DAYS } from './usage.ts';

/**
 * The days for which a claim or a key value stays after it was retired. Reports join the usage of a deleted VirtualKey
 * with its claim for this long; the last requests may be booked on the next day. A value that has ended must not become
 * live again when a cluster is restored from a backup, which is younger than that.
 */
export const RETIRED_DAYS = USAGE_DAYS + 1;

/** The rows that one transaction deletes. */
const MAX_ROWS = 2000;

interface RetiredOptions {
  /** The caller's clock. The database's clock counts if it is behind. */
  readonly now: Millis;
  readonly isOver: () => boolean;
  /** Smaller in tests. */
  readonly retiredDays?: number;
}

/**
 * Deletes claims that were retired long ago, with their values and sums, and values of other claims that ended long
 * ago. A claim stays while a ledger row names it: its hours stay as long as the row (old-sums.ts). It also stays while
 * a rejected row names it, and while a live VirtualKey is charged to it: `FIND` (policies.ts) reads its policy. Only an
 * adoption makes a retired claim live again, so no window of these claims is current. Returns false if the time is over
 * before all are deleted: call again. Rows that another transaction has locked are left to the next day.
 */
export async function forgetRetired(
  session: Session,
  { now, isOver, retiredDays = RETIRED_DAYS }: RetiredOptions,
): Promise<boolean> {
  for (const statement of [FORGET_VALUES, FORGET_CLAIMS])
    for (let deleted = MAX_ROWS; deleted >= MAX_ROWS; ) {
      if (isOver()) return false;
      const [row] = await session.query<{ deleted: number }>(LIMIT, statement, [now, retiredDays, MAX_ROWS]);
      deleted = row?.deleted ?? 0;
    }
  return true;
}

const BOUND = `least(now(), to_timestamp($1::float8 / 1000)) - make_interval(days => $2::int)`;

/** Values that were retired with their claim stay as long as the claim: an adoption makes them live again. */
const FORGET_VALUES = `
with deleted as (
  delete from gateway_operator.key_value where ctid = any(array(
    select v.ctid from gateway_operator.key_value v join gateway_operator.claim c using (scope_id)
    where v.retired_at < ${BOUND} and v.retired_at < coalesce(c.retired_at, 'infinity') limit $3::int for update of v skip locked))
  returning 1)
select count(*)::int as deleted from deleted`;

/** Budgets for models and further windows have no claim: their sums are deleted with the claim of their VirtualKey. */
const FORGET_CLAIMS = `
with old as materialized (
  select c.scope_id, c.policy from gateway_operator.claim c
  where c.retired_at < ${BOUND}
    and not exists (select from gateway_operator.hour_sum h where h.scope_id = c.scope_id)
    and not exists (select from gateway_operator.entry_rejected e where e.scope_ids @> array[c.scope_id::text])
    and (c.kind = 'key' or c.scope_id not in (
      select unnest(k.charged_scope_ids) from gateway_operator.claim k where k.retired_at is null))
  limit $3::int for update of c skip locked),
scopes as materialized (
  select scope_id from old
  union
  select (further ->> 'scopeId')::uuid
  from old cross join lateral jsonb_array_elements(coalesce(policy -> 'furtherBudgets', '[]')) as further),
recounts as (delete from gateway_operator.recount where scope_id in (select scope_id from scopes)),
sums as (delete from gateway_operator.sum where scope_id in (select scope_id from scopes)),
openings as (delete from gateway_operator.opening_balance where scope_id in (select scope_id from scopes)),
values as (delete from gateway_operator.key_value where scope_id in (select scope_id from old)),
claims as (delete from gateway_operator.claim where scope_id in (select scope_id from old) returning 1)
select count(*)::int as deleted from claims`;
