// Records of keys by hash, at most five seconds older than PostgreSQL: a cache that is correct when empty (DESIGN 7).

import { createLru } from '#core/caches/lru.ts';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { REQUEST_DEADLINE } from '#core/ledger/timeout.ts';
import type { Millis } from '#core/ports/money.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import type { GatewayDependencies } from '../deps.ts';

/** A record is trusted for this time, counted from the beginning of its query. */
const FRESH: Millis = 5_000;
/** After this time the record is read again, while the old record still serves. */
const REFRESH_AFTER: Millis = 3_000;
/** An unknown key is read again sooner: the reconciler may have created it just now. */
const FRESH_UNKNOWN: Millis = 1_000;
/** A look-up ends after this time, answered or not. The next request then begins a new look-up. */
const LOOKUP_TIMEOUT: Millis = 2_000;
const MAX_RECORDS = 10_000;
/**
 * Bytes of all records as JSON. One record may have some hundred thousand, and takes up to four times as much memory.
 */
const MAX_BYTES = 8 * 1024 * 1024;
/** The maximum bytes of an ordinary record; a larger record is large. */
const MAX_ORDINARY = 4096;
const SIZES = { maxSize: MAX_BYTES, sizeCalculation: ({ record }: CachedRecord) => record?.size ?? 1 };
/**
 * Queries that run concurrently: for known keys, for unknown keys, which may be made up, and for keys with large
 * records, which no other query reads: a tenant may have many of them, and other keys must not wait for them.
 */
const QUERIES = { known: 4, unknown: 2, large: 1 };
/** The minimum time between the beginnings of two queries of a queue while many keys come, so that they share queries. */
const QUERY_INTERVAL: Millis = 2;
/** The maximum number of keys that wait for a query. One query reads all keys that wait. */
const MAX_WAITING = 1_000;
const TOO_MANY_LOOKUPS = 'too many keys wait for a look-up';

interface CachedRecord {
  readonly record: KeyRecord | undefined;
  readonly queriedAt: Millis;
  /** The record is trusted until this time. */
  readonly freshUntil: Millis;
}

export type PolicyMemory = ReturnType<typeof createPolicyMemory>;

type PolicyResult = Result<CachedRecord, string>;

/**
 * Records by hash. Unknown keys have a part of their own, so that a flood of made-up keys evicts no real key. Large
 * records have one too: a tenant may have many of them, and they must not evict ordinary ones.
 */
export const createPolicyMemory = () => ({
  known: createLru<CachedRecord>(MAX_RECORDS, { sizes: SIZES }),
  large: createLru<CachedRecord>(MAX_RECORDS, { sizes: SIZES }),
  unknown: createLru<CachedRecord>(MAX_RECORDS),
});

const PARTS = ['known', 'large', 'unknown'] as const;

/** The part of the memory for a record. */
function partOf(cached: CachedRecord): (typeof PARTS)[number] {
  if (cached.record === undefined) return 'unknown';
  return cached.record.size > MAX_ORDINARY ? 'large' : 'known';
}

/**
 * Finds records by hash; immediately, if memory has a fresh record. `err`: why there is none, such as a database that
 * cannot be reached. A request waits at most until its deadline; a later reply is kept for later requests.
 */
export function createPolicyCache(
  { policies, clock, timer }: Pick<GatewayDependencies, 'policies' | 'clock' | 'timer'>,
  memory: PolicyMemory = createPolicyMemory(),
) {
  const { known, large, unknown } = memory;
  const queues = {
    known: createLookupQueue({ clock, timer }, QUERIES.known, queryUpTo(MAX_ORDINARY)),
    unknown: createLookupQueue({ clock, timer }, QUERIES.unknown, queryUpTo(MAX_ORDINARY)),
    large: createLookupQueue({ clock, timer }, QUERIES.large, queryUpTo(Number.POSITIVE_INFINITY)),
  };

  return function findPolicy(hash: string): PolicyResult | Promise<PolicyResult> {
    const cached = known.get(hash) ?? large.get(hash) ?? unknown.get(hash);
    const now = clock.now();
    if (cached === undefined || now < cached.queriedAt || now >= cached.freshUntil) return waitFor(lookUp(hash));
    if (cached.record !== undefined && now - cached.queriedAt >= REFRESH_AFTER) void lookUp(hash);
    return ok(cached);
  };

  async function waitFor(lookup: Promise<PolicyResult>): Promise<PolicyResult> {
    try {
      return await withTimeout(timer, REQUEST_DEADLINE, 'the database', lookup);
    } catch (error) {
      return err(reasonOf(error));
    }
  }

  function lookUp(hash: string): Promise<PolicyResult> {
    if (large.get(hash) !== undefined) return queues.large(hash);
    return known.get(hash) === undefined ? queues.unknown(hash) : queues.known(hash);
  }

  function queryUpTo(maxSize: number): Query {
    return async (hashes, resolve) => {
      const queriedAt = clock.now();
      try {
        const records = await withTimeout(timer, LOOKUP_TIMEOUT, 'the database', policies.find(hashes, maxSize));
        for (const [hash, record] of records)
          if (record === undefined || record.key !== undefined) resolve(hash, ok(keep(hash, record, queriedAt)));
          else if (record.size > maxSize) resolve(hash, queues.large(hash));
      } catch (error) {
        const failed = err(reasonOf(error));
        for (const hash of hashes) resolve(hash, failed);
      }
    };
  }

  function keep(hash: string, record: KeyRecord | undefined, queriedAt: Millis): CachedRecord {
    const cached = { record, queriedAt, freshUntil: queriedAt + (record === undefined ? FRESH_UNKNOWN : FRESH) };
    const part = partOf(cached);
    for (const other of PARTS) if (other !== part) memory[other].delete(hash);
    memory[part].set(hash, cached);
    return cached;
  }
}

type Lookup = PromiseWithResolvers<PolicyResult>;
/** Ends the look-up of a hash. Only the first call for a hash counts. */
type Resolve = (hash: string, result: PolicyResult | Promise<PolicyResult>) => void;
type Query = (hashes: ReadonlyArray<string>, resolve: Resolve) => Promise<void>;

/**
 * Look-ups of keys; one query reads all keys that wait. If too many keys wait, the oldest look-up fails: a flood of
 * keys delays no other key. `Limiter` cannot do this: it would run one query for each key.
 */
function createLookupQueue(
  { clock, timer }: Pick<GatewayDependencies, 'clock' | 'timer'>,
  queries: number,
  query: Query,
) {
  let waiting = new Map<string, Lookup>();
  /** Look-ups of the queries that run. */
  const inQuery = new Map<string, Lookup>();
  let running = 0;
  let begunAt = Number.NEGATIVE_INFINITY;
  let lastCount = 0;
  let isDelayed = false;

  return function enqueue(hash: string): Promise<PolicyResult> {
    const known = inQuery.get(hash) ?? waiting.get(hash);
    const lookup = known ?? Promise.withResolvers<PolicyResult>();
    if (inQuery.has(hash)) return lookup.promise;
    // A key that is requested again becomes the newest.
    waiting.delete(hash);
    waiting.set(hash, lookup);
    const [oldest] = waiting.size > MAX_WAITING ? waiting : [];
    if (oldest !== undefined) {
      waiting.delete(oldest[0]);
      oldest[1].resolve(err(TOO_MANY_LOOKUPS));
    }
    begin();
    return lookup.promise;
  };

  /**
   * Begins a query of all keys that wait. If the previous query has begun just now, and still runs or had several keys,
   * this one begins a little later, so that more keys share it.
   */
  function begin(): void {
    if (waiting.size === 0 || running >= queries) return;
    // The clock may be set back.
    const age = Math.max(0, clock.now() - begunAt);
    if (age >= QUERY_INTERVAL || (running === 0 && lastCount <= 1)) return void run();
    if (isDelayed) return;
    isDelayed = true;
    timer(QUERY_INTERVAL - age, () => {
      isDelayed = false;
      begin();
    });
  }

  async function run(): Promise<void> {
    running += 1;
    begunAt = clock.now();
    lastCount = waiting.size;
    const batch = waiting;
    waiting = new Map();
    for (const [hash, lookup] of batch) inQuery.set(hash, lookup);
    await query([...batch.keys()], (hash, result) => {
      const lookup = batch.get(hash);
      if (lookup === undefined) return;
      batch.delete(hash);
      inQuery.delete(hash);
      lookup.resolve(result);
    });
    // Look-ups that this query has not answered have the next one, in which small records come first again.
    if (batch.size > 0) lastCount = 0;
    for (const [hash, lookup] of batch) {
      inQuery.delete(hash);
      if (waiting.size < MAX_WAITING) waiting.set(hash, lookup);
      else lookup.resolve(err(TOO_MANY_LOOKUPS));
    }
    running -= 1;
    begin();
  }
}
