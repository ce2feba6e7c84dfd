// Sums that no ledger row and no current window needs: they are deleted once a day, after their days were dropped. If
// all ledger rows stay (`RETAIN_DAYS: forever`), their hours stay too, because a recount of any window reads them.
// Nothing reads the sum of a window that ended long ago, so these sums are deleted in any case.
import type { Millis } from '#core/ports/money.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { hourOf } from './hour-parts.ts';
import { DAY } from './partitions.ts';
import { BACKGROUND_LIMIT as LIMIT, type Session } from './session.ts';

/** The scopes whose rows are looked for together. */
const PORTION = 500;
/** The rows of each table that one transaction deletes: no booking waits long for the rows of a scope. */
const MAX_ROWS = 20_000;

/** The days for which sums of ended windows stay if all ledger rows do: the default of `RETAIN_DAYS`. */
const KEPT_DAYS = 400;

interface SumBounds {
  /** Sums and recounts of windows that ended until then are deleted. */
  readonly endedUntil: Millis;
  /** The first kept day: earlier hours are deleted. 0: all ledger rows stay. */
  readonly keptFrom: Millis;
}

export interface OldSumsOptions {
  /** Whether all ledger rows stay. */
  readonly isForever: boolean;
  /** The caller's clock. The database's clock counts if it is behind. */
  readonly now: Millis;
  readonly isOver: () => boolean;
  /**
   * Deletes what only old sums needed. Called after all old sums are deleted. Returns whether it is done; if not, the
   * next resync calls it again.
   */
  readonly forgetUnneeded: () => Promise<boolean>;
}

/**
 * Deletes sums and recounts of windows that ended before the first kept day, and turns the hours before it into one
 * opening balance per scope. If all ledger rows stay, sums of windows that ended `KEPT_DAYS` ago are deleted
 * nevertheless. Does nothing if it was done for this day. If `isOver` returns true, or the process ends meanwhile, the
 * next resync continues. A row that another transaction has locked is left to the next day.
 */
export async function forgetOldSums(
  session: Session,
  { isForever, now, isOver, forgetUnneeded }: OldSumsOptions,
): Promise<void> {
  if (isForever) await session.query(LIMIT, KEEP_FOREVER);
  const [bounds] = await session.query<SumBounds>(LIMIT, UNFINISHED, [isForever ? now : null, KEPT_DAYS]);
  if (bounds === undefined) return;
  for (let scopes = await nextScopes(session, null); scopes.length > 0; ) {
    const isDone = await forgetRows(session, scopes, bounds);
    if (isDone) scopes = await nextScopes(session, scopes.at(-1) ?? null);
    if (scopes.length > 0 && isOver()) return;
  }
  if (await forgetUnneeded()) await session.query(LIMIT, FINISH, [bounds.endedUntil]);
}

/** The next scopes after `last` that have hours or sums, sorted. */
async function nextScopes(session: Session, last: ScopeId | null): Promise<ReadonlyArray<ScopeId>> {
  const found = await session.query<{ scope: ScopeId }>(LIMIT, SCOPES, [last, PORTION]);
  return found.map(({ scope }) => scope);
}

/** Returns whether no row of these scopes is left. */
function forgetRows(
  session: Session,
  scopes: ReadonlyArray<ScopeId>,
  { endedUntil, keptFrom }: SumBounds,
): Promise<boolean> {
  return session.transaction(LIMIT, async (query) => {
    let isDone = true;
    for (const [statement, before] of [
      [FORGET_RECOUNTS, endedUntil],
      [FORGET_SUMS, endedUntil],
      [CLOSE_HOURS, hourOf(keptFrom)],
    ] as const) {
      const [row] = await query<{ deleted: number }>(statement, [scopes, before, MAX_ROWS]);
      if ((row?.deleted ?? 0) >= MAX_ROWS) isDone = false;
    }
    return isDone;
  });
}

/** Adds the row of `retention` to a database in which no day was dropped yet: all days are kept. */
const KEEP_FOREVER = `
insert into gateway_operator.retention (kept_from) values ('1970-01-01') on conflict do nothing`;

const UNFINISHED = `
select extract(epoch from kept_from)::float8 * 1000 as "keptFrom", extract(epoch from ended_until)::float8 * 1000 as "endedUntil"
from gateway_operator.retention cross join lateral (select case when $1::float8 is null then kept_from else greatest(kept_from,
  (least(now(), to_timestamp($1::float8 / 1000)) at time zone 'UTC')::date - $2::int) end as ended_until) as bound
where cleaned_from is distinct from ended_until`;

const FINISH = `
update gateway_operator.retention set cleaned_from = date '1970-01-01' + ($1::float8 / ${DAY})::int`;

/** Each scope is found by one look-up in each of the two indexes, however many rows it has. */
const SCOPES = `
with recursive found (scope_id, number) as (
  (select least(
      (select scope_id from gateway_operator.sum where $1::uuid is null or scope_id > $1::uuid order by scope_id limit 1),
      (select scope_id from gateway_operator.hour_sum where $1::uuid is null or scope_id > $1::uuid order by scope_id limit 1)), 1)
  union all
  select least(
      (select s.scope_id from gateway_operator.sum s where s.scope_id > found.scope_id order by s.scope_id limit 1),
      (select h.scope_id from gateway_operator.hour_sum h where h.scope_id > found.scope_id order by h.scope_id limit 1)), number + 1
  from found where found.scope_id is not null and number < $2::int)
select scope_id::text as scope from found where scope_id is not null order by scope_id`;

const FORGET_RECOUNTS = `
with deleted as (
  delete from gateway_operator.recount where ctid = any(array(
    select r.ctid from gateway_operator.recount r
    where r.scope_id = any($1::uuid[]) and r.window_end <= $2::bigint limit $3::int for update skip locked))
  returning 1)
select count(*)::int as deleted from deleted`;

const FORGET_SUMS = `
with deleted as (
  delete from gateway_operator.sum where ctid = any(array(
    select s.ctid from gateway_operator.sum s
    where s.scope_id = any($1::uuid[]) and s.window_start < $2::bigint and s.window_end <= $2::bigint
    order by s.scope_id, s.window_start, s.window_end limit $3::int for update skip locked))
  returning 1)
select count(*)::int as deleted from deleted`;

/** One statement, so that a recount sees each hour either in `hour_sum` or in the opening balance. */
const CLOSE_HOURS = `
with deleted as (
  delete from gateway_operator.hour_sum where ctid = any(array(
    select h.ctid from gateway_operator.hour_sum h where h.scope_id = any($1::uuid[]) and h.hour < $2::bigint
    order by h.scope_id, h.hour limit $3::int for update skip locked))
  returning scope_id, amount),
closed as (
  insert into gateway_operator.opening_balance as o (scope_id, amount)
  select scope_id, sum(amount) from deleted group by scope_id order by scope_id
  on conflict (scope_id) do update set amount = o.amount + excluded.amount)
select count(*)::int as deleted from deleted`;
