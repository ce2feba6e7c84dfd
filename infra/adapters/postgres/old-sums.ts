// Sums that no ledger row and no window in force needs: they leave once a day, after their days were dropped.
import type { Millis } from '#core/ports/money.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { hourOf } from './recount.ts';
import { BACKGROUND_LIMIT as LIMIT, type Session } from './session.ts';

/** The scopes of one transaction: no booking waits long for the rows of a scope. */
const PORTION = 500;

/**
 * Deletes sums and recounts of windows that ended before the first kept day, and turns the hours before it into one
 * opening balance per scope. Does nothing if it was done for this day. If the process ends in between, the next resync
 * begins again. A row that another transaction has locked is left to the next day.
 */
export async function forgetOldSums(session: Session): Promise<void> {
  const [row] = await session.query<{ time: number }>(LIMIT, UNFINISHED);
  if (row === undefined) return;
  const { time } = row;
  for (let last: ScopeId | null = null; ; ) {
    const scopes = await forgetPortion(session, time, last);
    last = scopes.at(-1) ?? null;
    if (scopes.length < PORTION) break;
  }
  await session.query(LIMIT, FINISH, [time]);
}

const UNFINISHED = `
select extract(epoch from kept_from)::float8 * 1000 as time from gateway_operator.retention
where summed_from is distinct from kept_from`;

const FINISH = `
update gateway_operator.retention set summed_from = kept_from where extract(epoch from kept_from) * 1000 = $1::float8`;

/** Returns the scopes of the portion, sorted: those after `last` that have hours or sums. */
function forgetPortion(session: Session, keptFrom: Millis, last: ScopeId | null): Promise<ReadonlyArray<ScopeId>> {
  return session.transaction(LIMIT, async (query) => {
    const found = await query<{ scope: ScopeId }>(SCOPES, [last, PORTION]);
    const scopes = found.map(({ scope }) => scope);
    if (scopes.length === 0) return [];
    await query(FORGET_RECOUNTS, [scopes, keptFrom]);
    await query(FORGET_SUMS, [scopes, keptFrom]);
    await query(CLOSE_HOURS, [scopes, hourOf(keptFrom)]);
    return scopes;
  });
}

/** Each scope is found by one look-up in each of the two indexes, however many rows it has. */
const SCOPES = `
with recursive found (scope_id, place) as (
  (select least(
      (select scope_id from gateway_operator.sum where $1::uuid is null or scope_id > $1::uuid order by scope_id limit 1),
      (select scope_id from gateway_operator.hour_sum where $1::uuid is null or scope_id > $1::uuid order by scope_id limit 1)), 1)
  union all
  select least(
      (select s.scope_id from gateway_operator.sum s where s.scope_id > found.scope_id order by s.scope_id limit 1),
      (select h.scope_id from gateway_operator.hour_sum h where h.scope_id > found.scope_id order by h.scope_id limit 1)), place + 1
  from found where found.scope_id is not null and place < $2::int)
select scope_id::text as scope from found where scope_id is not null order by scope_id`;

const FORGET_RECOUNTS = `
delete from gateway_operator.recount where scope_id = any($1::uuid[]) and window_end <= $2::bigint`;

const FORGET_SUMS = `
delete from gateway_operator.sum where ctid = any(array(
  select s.ctid from gateway_operator.sum s
  where s.scope_id = any($1::uuid[]) and s.window_start < $2::bigint and s.window_end <= $2::bigint
  order by s.scope_id, s.window_start, s.window_end for update skip locked))`;

/** One statement, so that a recount sees each hour either in `hour_sum` or in the opening balance. */
const CLOSE_HOURS = `
with closed as (
  delete from gateway_operator.hour_sum where ctid = any(array(
    select h.ctid from gateway_operator.hour_sum h where h.scope_id = any($1::uuid[]) and h.hour < $2::bigint
    order by h.scope_id, h.hour for update skip locked))
  returning scope_id, amount)
insert into gateway_operator.opening_balance as o (scope_id, amount)
select scope_id, sum(amount) from closed group by scope_id order by scope_id
on conflict (scope_id) do update set amount = o.amount + excluded.amount`;
