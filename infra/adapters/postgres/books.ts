// The books: what has been charged, read and booked, with the locks of an instance's ledger (LEDGER 2, 6, 8).
import type { Books, Entry, Reading } from '#core/ports/books.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { type BookingDeps, bookIn, inBooking } from './booking.ts';
import { createReading, inPortions, readingBy } from './reading.ts';
import { lockForRecount } from './recount.ts';
import { BACKGROUND_LIMIT, GATEWAY_LIMIT, type Query } from './session.ts';

/** How much one statement is given, so that it keeps its limit whatever a caller has collected. */
const BATCH = 5000;
const QUESTION = 10_000;

export function createBooks(deps: BookingDeps): Books {
  const { session } = deps;
  return {
    book: async (instanceUid, entries, marks) => {
      const book = async (batch: ReadonlyArray<Entry>) => [
        await inBooking(deps, (booking) => bookIn(booking, instanceUid, batch, marks)),
      ];
      const done = await inPortions(entries, BATCH, book);
      return { ...done.at(-1), rejected: done.flatMap(({ rejected }) => rejected) };
    },
    ...createReading(session),
    withLedgerLock: (instanceUid, work) =>
      session.transaction(GATEWAY_LIMIT, (query) => inLedgerLock(query, instanceUid, work)),
    scopesOfOtherInstances: async (instanceUid, scopes) => {
      const ask = (portion: ReadonlyArray<ScopeId>) =>
        session.query<{ scope: ScopeId }>(BACKGROUND_LIMIT, ELSEWHERE, [instanceUid, portion]);
      return new Set((await inPortions(scopes, QUESTION, ask)).map(({ scope }) => scope));
    },
    tryErrandLock: (instanceUid, errand, work) =>
      inBooking(deps, async (booking) => {
        const { query } = booking;
        const [row] = await query<{ mine: boolean }>(ALONE, [`${instanceUid} ${errand}`]);
        if (row?.mine !== true) return undefined;
        return work({
          ...readingBy((_, ...call) => query(...call)),
          book: (uid, entries, marks) => bookIn(booking, uid, entries, marks),
          withLedgerLock: (uid, read) => inLedgerLock(query, uid, read),
        });
      }),
  };
}

async function inLedgerLock<T>(query: Query, instanceUid: string, work: (reading: Reading) => Promise<T>): Promise<T> {
  await lockForRecount(query, instanceUid);
  return work(readingBy((_, ...call) => query(...call)));
}

/** Budgets for models have no rows (decision 0014): they stand in the policy of their key. */
const ELSEWHERE = `
select scope::text from gateway_operator.claim c cross join lateral unnest(array[c.scope_id] ||
  array(select (model ->> 'scopeId')::uuid from jsonb_array_elements(coalesce(c.policy -> 'modelScopes', '[]')) as model)) as scope
where c.scope_id = any($2::uuid[]) and c.instance_uid <> $1`;

const ALONE = 'select pg_try_advisory_xact_lock(hashtextextended($1, 7203418868)) as mine';
