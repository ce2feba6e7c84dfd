// Retired claims and key values that nothing needs any more: they are deleted once a day, after the old sums.
import type { Millis } from '#core/ports/money.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { inPortions } from './ledger-queries.ts';
import { BACKGROUND_LIMIT as LIMIT, type Session } from './session.ts';
import { USAGE_DAYS } from './usage.ts';

/**
 * The days for which a claim or a key value stays after it was retired. Reports join the usage of a deleted VirtualKey
 * with its claim for this long; the last requests may be booked on the next day. A value that has ended must not become
 * live again when a cluster is restored from a backup that is younger than this.
 */
export const RETIRED_DAYS = USAGE_DAYS + 1;

/** The claims that one statement looks at or deletes, and the maximum values that it deletes. */
const PORTION = 5000;

interface RetiredOptions {
  /** The caller's clock. The database's clock counts if it is behind. */
  readonly now: Millis;
  readonly isOver: () => boolean;
  /** Fewer in tests. */
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
  const bound = [now, retiredDays];
  const forget = (scopes: ReadonlyArray<ScopeId>, isOfKeys: boolean) =>
    scopes.length === 0 ? [] : session.query(LIMIT, FORGET_CLAIMS, [...bound, scopes, isOfKeys]);
  const owners: ScopeId[] = [];
  for (let after: ScopeId | null = null; ; ) {
    if (isOver()) return false;
    const [page]: OldClaims[] = await session.query<OldClaims>(LIMIT, OLD_CLAIMS, [...bound, after, PORTION]);
    if (page === undefined || page.last === null) break;
    for (let deleted = PORTION; deleted >= PORTION; )
      deleted = (await session.query(LIMIT, FORGET_VALUES, [...bound, after, page.last, PORTION])).length;
    await forget(page.keys, true);
    owners.push(...page.owners);
    after = page.last;
  }
  await inPortions(owners, async (portion) => (isOver() ? [] : forget(portion, false)), PORTION);
  return !isOver();
}

/** The claims of a page that were retired long ago and that no row names. Owners are Users and Teams. */
interface OldClaims {
  readonly keys: ReadonlyArray<ScopeId>;
  readonly owners: ReadonlyArray<ScopeId>;
  /** The last scope of the page; null: it has none. */
  readonly last: ScopeId | null;
}

const BOUND = `least(now(), to_timestamp($1::float8 / 1000)) - make_interval(days => $2::int)`;

/** The claims are read in the order of their primary key: no index has the retired ones. */
const OLD_CLAIMS = `
with page as materialized (
  select scope_id, kind, retired_at from gateway_operator.claim where $3::uuid is null or scope_id > $3::uuid
  order by scope_id limit $4::int),
old as materialized (
  select c.scope_id, c.kind from page c
  where c.retired_at < ${BOUND}
    and not exists (select from gateway_operator.hour_sum h where h.scope_id = c.scope_id)
    and not exists (select from gateway_operator.entry_rejected e where e.scope_ids @> array[c.scope_id::text]))
select (select scope_id::text from page order by scope_id desc limit 1) as last,
  array(select scope_id::text from old where kind = 'key') as keys,
  array(select scope_id::text from old where kind <> 'key') as owners`;

/** Values that were retired with their claim stay as long as the claim: an adoption makes them live again. */
const FORGET_VALUES = `
delete from gateway_operator.key_value where ctid = any(array(
  select v.ctid from gateway_operator.key_value v
  where ($3::uuid is null or v.scope_id > $3::uuid) and v.scope_id <= $4::uuid and v.retired_at < ${BOUND}
    and v.retired_at < coalesce((select c.retired_at from gateway_operator.claim c where c.scope_id = v.scope_id), 'infinity')
  limit $5::int for update skip locked))
returning 1`;

/** Budgets for models and further windows have no claim: their sums are deleted with the claim of their VirtualKey. */
const FORGET_CLAIMS = `
with old as materialized (
  select c.scope_id, c.policy from gateway_operator.claim c
  where c.scope_id = any($3::uuid[]) and c.retired_at < ${BOUND}
    and ($4::boolean or c.scope_id not in (
      select owner from gateway_operator.claim k cross join lateral unnest(k.charged_scope_ids) as owner
      where k.retired_at is null and owner = any($3::uuid[])))
  for update of c skip locked),
scopes as materialized (
  select scope_id from old
  union
  select (further ->> 'scopeId')::uuid
  from old cross join lateral jsonb_array_elements(coalesce(policy -> 'furtherBudgets', '[]')) as further),
recounts as (delete from gateway_operator.recount where scope_id in (select scope_id from scopes)),
sums as (delete from gateway_operator.sum where scope_id in (select scope_id from scopes)),
openings as (delete from gateway_operator.opening_balance where scope_id in (select scope_id from scopes)),
values as (delete from gateway_operator.key_value where scope_id in (select scope_id from old))
delete from gateway_operator.claim where scope_id in (select scope_id from old)`;
