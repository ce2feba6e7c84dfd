// Usage of scopes by model and day: what batches have added is summed up at each resync, and old days are deleted.
import { BACKGROUND_LIMIT as LIMIT, type Session } from './session.ts';

/** The days that usage is kept. */
export const USAGE_DAYS = 1100;
/**
 * The additions that one transaction sums up: as many as the largest batch has, which a booking has written in one
 * transaction too. A single batch is summed up in any case.
 */
const MAX_ADDITIONS = 20_000;
/** The batches that one transaction sums up: many batches have a few additions. */
const MAX_BATCHES = 500;
/** The rows that one transaction deletes. */
const MAX_ROWS = 20_000;

/**
 * Adds the rows of `usage_added` to `usage_day`, so that all usage stays the same, and deletes days that are older than
 * `USAGE_DAYS` by the database's clock. Rows that another process sums up meanwhile are left to it. Once `isOver`
 * returns true, the rest is left to the next call.
 */
export async function sumUpUsage(session: Session, isOver: () => boolean): Promise<void> {
  for (let isDone = false; !isDone; isDone ||= isOver()) {
    const [summed] = await session.transaction(LIMIT, (query) =>
      query<{ isDone: boolean }>(SUM_UP, [MAX_BATCHES, MAX_ADDITIONS]),
    );
    isDone = summed?.isDone !== false;
  }
  for (let isDone = false; !isDone; isDone ||= isOver()) {
    const deleted = await session.query(LIMIT, FORGET, [USAGE_DAYS, MAX_ROWS]);
    isDone = deleted.length < MAX_ROWS;
  }
}

/** Rows are written in the order of scopes, so that two processes that sum up cannot deadlock. */
const SUM_UP = `
with found as materialized (
  select id, cardinality(model_indexes) as additions from gateway_operator.usage_added
  order by id limit $1::int for update skip locked),
numbered as (select id, additions, sum(additions) over (order by id) as until from found),
taken as (
  delete from gateway_operator.usage_added where id = any(array(
    select id from numbered where until <= $2::int or until = additions))
  returning *),
added as (
  select u.scope_id, date '1970-01-01' + u.day as day, models[model] collate "C" as model, min(instance_uid) as instance_uid,
    sum(u.requests) as requests, sum(u.input_tokens) as input_tokens, sum(u.output_tokens) as output_tokens,
    sum(u.cached_input_tokens) as cached_input_tokens, sum(u.cache_write_tokens) as cache_write_tokens, sum(u.cost) as cost
  from taken a, unnest(a.scope_ids, a.model_indexes, a.days, a.requests, a.input_tokens, a.output_tokens, a.cached_input_tokens,
      a.cache_write_tokens, a.costs)
    as u (scope_id, model, day, requests, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, cost)
  group by 1, 2, 3),
summed as (
  insert into gateway_operator.usage_day as u (scope_id, day, model, instance_uid, requests, input_tokens, output_tokens,
      cached_input_tokens, cache_write_tokens, cost)
  select * from added order by scope_id, day, model
  on conflict (day, scope_id, model) do update set requests = u.requests + excluded.requests,
    input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
    cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
    cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens, cost = u.cost + excluded.cost)
select found.count < $1::int and found.count = taken.count as "isDone"
from (select count(*) from found) as found, (select count(*) from taken) as taken`;

const FORGET = `
delete from gateway_operator.usage_day where ctid = any(array(
  select ctid from gateway_operator.usage_day where day < (now() at time zone 'UTC')::date - $1::int
  limit $2::int for update skip locked))
returning 1`;
