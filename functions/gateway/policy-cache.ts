// What may this key do, as PostgreSQL had it at most five seconds ago? A cache that is correct when empty (DESIGN 7).
import { PATIENCE } from '#core/ledger/patience.ts';
import { within } from '#core/ledger/within.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { KeyRecord, Policies } from '#core/ports/policy.ts';
import { reasonOf } from '#core/reason.ts';
import { err, ok, type Result } from '#core/result.ts';

/** How long an answer is trusted, counted from the moment it was asked for. */
const FRESH: Millis = 5_000;
/** From here on a new answer is fetched while the old one still serves. */
const AHEAD: Millis = 3_000;
/** An unknown key is asked for again sooner: it may just have been minted. */
const FRESH_MISS: Millis = 1_000;
/** By then a question is over, whatever becomes of it: the next one is asked anew. */
const LONGEST: Millis = 2_000;
const MOST_RECORDS = 10_000;
/** Apart from the records, so that a flood of made-up keys pushes out no real one. */
const MOST_MISSES = 10_000;

interface Answer {
  readonly record: KeyRecord | undefined;
  readonly askedAt: Millis;
}

/** What was answered, by hash. */
export interface PolicyMemory {
  readonly records: Map<string, Answer>;
  readonly misses: Map<string, Answer>;
}

export const createPolicyMemory = (): PolicyMemory => ({ records: new Map(), misses: new Map() });

export interface PolicyCacheDeps {
  readonly policies: Policies;
  readonly clock: Clock;
  readonly timer: Timer;
}

type Found = Result<KeyRecord | undefined, string>;

/**
 * Finds records by hash, at once where one is fresh. `err`: nobody knows (the database is away and nothing fresh is cached), and why.
 * Nobody waits longer than a client may; an answer that comes later is for those who ask then.
 */
export type FindPolicy = (hash: string) => Found | Promise<Found>;

export function createPolicyCache(
  { policies, clock, timer }: PolicyCacheDeps,
  { records, misses } = createPolicyMemory(),
): FindPolicy {
  const flights = new Map<string, Promise<Result<Answer, string>>>();

  return function findPolicy(hash) {
    const now = clock.now();
    const cached = fresh(hash, now);
    if (cached === undefined) {
      return wait(fetch(hash));
    }
    if (cached.record !== undefined && now - cached.askedAt >= AHEAD) void fetch(hash);
    return ok(cached.record);
  };

  function fresh(hash: string, now: Millis): Answer | undefined {
    const answer = records.get(hash) ?? misses.get(hash);
    if (answer === undefined) return undefined;
    const age = now - answer.askedAt;
    return age >= 0 && age < (answer.record === undefined ? FRESH_MISS : FRESH) ? answer : undefined;
  }

  async function wait(flight: Promise<Result<Answer, string>>): Promise<Found> {
    try {
      const fetched = await within(timer, PATIENCE, 'the database', flight);
      return fetched.ok ? ok(fetched.value.record) : fetched;
    } catch (silence) {
      return err(reasonOf(silence));
    }
  }

  /** One question in the air per key; everybody who asks meanwhile waits for it. */
  function fetch(hash: string): Promise<Result<Answer, string>> {
    const underway = flights.get(hash);
    if (underway !== undefined) return underway;
    const flight = ask(hash).then((result) => {
      if (flights.get(hash) === flight) flights.delete(hash);
      if (result.ok) keep(hash, result.value);
      return result;
    });
    flights.set(hash, flight);
    return flight;
  }

  async function ask(hash: string): Promise<Result<Answer, string>> {
    const askedAt = clock.now();
    try {
      return ok({ record: await within(timer, LONGEST, 'the database', policies.find(hash)), askedAt });
    } catch (error) {
      return err(reasonOf(error));
    }
  }

  function keep(hash: string, answer: Answer): void {
    records.delete(hash);
    misses.delete(hash);
    const [kept, most] = answer.record === undefined ? [misses, MOST_MISSES] : [records, MOST_RECORDS];
    kept.set(hash, answer);
    for (const oldest of kept.keys()) {
      if (kept.size <= most) break;
      kept.delete(oldest);
    }
  }
}
