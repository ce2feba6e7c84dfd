// Key policies by hash, as PostgreSQL had them at most five seconds ago: a cache that is correct when empty (DESIGN 7).

import { createLru } from '#core/caches/lru.ts';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { REQUEST_DEADLINE } from '#core/ledger/timeout.ts';
import type { Millis } from '#core/ports/money.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import type { GatewayDeps } from '../deps.ts';

/** An answer is trusted for this time, counted from its question. */
const FRESH: Millis = 5_000;
/** After this time a new answer is fetched while the old one still serves. */
const REFRESH_AFTER: Millis = 3_000;
/** An unknown key is looked up again sooner: reconcile may have made it just now. */
const FRESH_UNKNOWN: Millis = 1_000;
/** A question is over after this time, answered or not: the next request asks again. */
const LOOKUP_TIMEOUT: Millis = 2_000;
const MAX_RECORDS = 10_000;
/** Characters of records as JSON: a record may have some hundred thousand, and takes up to four bytes for each. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Characters of an ordinary record. */
const MAX_ORDINARY = 4096;
const SIZES = {
  maxSize: MAX_CHARACTERS,
  sizeCalculation: ({ record }: CachedRecord) => JSON.stringify(record)?.length ?? 1,
};
/** Queries that run at the same time: of keys that are known, and of others, which may be made up. */
const QUERIES = { known: 4, unknown: 2 };
/** Keys that wait for a query, each of which asks for all of them. */
const MAX_WAITING = 1_000;
const TOO_MANY_LOOKUPS = 'too many keys are asked for';

interface CachedRecord {
  readonly record: KeyRecord | undefined;
  readonly askedAt: Millis;
  /** The record is trusted until then. */
  readonly freshUntil: Millis;
}

export type PolicyMemory = ReturnType<typeof createPolicyMemory>;

type PolicyResult = Result<CachedRecord, string>;

/**
 * Answers by hash. Unknown keys stand apart, so that a flood of made-up ones pushes out no real one; and large records,
 * which a tenant may have many of, so that they push out no ordinary one.
 */
export const createPolicyMemory = () => ({
  known: createLru<CachedRecord>(MAX_RECORDS, { sizes: SIZES }),
  large: createLru<CachedRecord>(MAX_RECORDS, { sizes: SIZES }),
  unknown: createLru<CachedRecord>(MAX_RECORDS),
});

const PARTS = ['known', 'large', 'unknown'] as const;

/** Where an answer is remembered. */
function partOf(answer: CachedRecord): (typeof PARTS)[number] {
  if (answer.record === undefined) return 'unknown';
  return SIZES.sizeCalculation(answer) > MAX_ORDINARY ? 'large' : 'known';
}

/**
 * Finds records by hash, immediately where one is fresh. `err`: why there is no fresh answer (the database is away).
 * No request waits longer than the request deadline; a later answer serves the requests after it.
 */
export function createPolicyCache(
  { policies, clock, timer }: Pick<GatewayDeps, 'policies' | 'clock' | 'timer'>,
  memory: PolicyMemory = createPolicyMemory(),
) {
  const { known, large, unknown } = memory;
  const queues = { known: createLookupQueue(QUERIES.known, query), unknown: createLookupQueue(QUERIES.unknown, query) };

  return async function findPolicy(hash: string): Promise<PolicyResult> {
    const answer = known.get(hash) ?? large.get(hash) ?? unknown.get(hash);
    const now = clock.now();
    if (answer === undefined || now < answer.askedAt || now >= answer.freshUntil) return wait(ask(hash));
    if (answer.record !== undefined && now - answer.askedAt >= REFRESH_AFTER) void ask(hash);
    return ok(answer);
  };

  async function wait(question: Promise<PolicyResult>): Promise<PolicyResult> {
    try {
      return await withTimeout(timer, REQUEST_DEADLINE, 'the database', question);
    } catch (error) {
      return err(reasonOf(error));
    }
  }

  function ask(hash: string): Promise<PolicyResult> {
    return (known.get(hash) ?? large.get(hash)) === undefined ? queues.unknown(hash) : queues.known(hash);
  }

  async function query(hashes: ReadonlyArray<string>, resolve: Resolve): Promise<void> {
    const askedAt = clock.now();
    const take = (some: ReadonlyArray<string>, records: ReadonlyMap<string, KeyRecord>): void => {
      for (const hash of some) resolve(hash, ok(keep(hash, records.get(hash), askedAt)));
    };
    try {
      take(hashes, await withTimeout(timer, LOOKUP_TIMEOUT, 'the database', policies.find(hashes, take)));
    } catch (error) {
      const failed = err(reasonOf(error));
      for (const hash of hashes) resolve(hash, failed);
    }
  }

  function keep(hash: string, record: KeyRecord | undefined, askedAt: Millis): CachedRecord {
    const answer = { record, askedAt, freshUntil: askedAt + (record === undefined ? FRESH_UNKNOWN : FRESH) };
    const place = partOf(answer);
    for (const other of PARTS) if (other !== place) memory[other].delete(hash);
    memory[place].set(hash, answer);
    return answer;
  }
}

type Lookup = PromiseWithResolvers<PolicyResult>;
/** Only the first call counts for a hash. */
type Resolve = (hash: string, result: PolicyResult) => void;
type Query = (hashes: ReadonlyArray<string>, resolve: Resolve) => Promise<void>;

/**
 * Questions about keys, of which each query asks all that wait. Where too many wait, the oldest goes: whoever asks for
 * very many delays nobody else. No `Limiter` does this: it would give each question a query of its own.
 */
function createLookupQueue(queries: number, query: Query) {
  let waiting = new Map<string, Lookup>();
  /** Questions of the queries that run. */
  const asked = new Map<string, Lookup>();
  let running = 0;

  return function ask(hash: string): Promise<PolicyResult> {
    const before = asked.get(hash) ?? waiting.get(hash);
    const question = before ?? Promise.withResolvers<PolicyResult>();
    if (asked.has(hash)) return question.promise;
    // Asked for again, a key is the newest.
    waiting.delete(hash);
    waiting.set(hash, question);
    const [oldest] = waiting.size > MAX_WAITING ? waiting : [];
    if (oldest !== undefined) {
      waiting.delete(oldest[0]);
      oldest[1].resolve(err(TOO_MANY_LOOKUPS));
    }
    if (running < queries) void run();
    return question.promise;
  };

  async function run(): Promise<void> {
    running += 1;
    while (waiting.size > 0) {
      const batch = waiting;
      waiting = new Map();
      for (const [hash, question] of batch) asked.set(hash, question);
      await query([...batch.keys()], (hash, result) => {
        const question = batch.get(hash);
        if (question === undefined) return;
        batch.delete(hash);
        asked.delete(hash);
        question.resolve(result);
      });
    }
    running -= 1;
  }
}
