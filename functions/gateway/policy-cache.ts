// Key policies by hash, as PostgreSQL had them at most five seconds ago: a cache that is correct when empty (DESIGN 7).
import { REQUEST_DEADLINE } from '#core/ledger/request-deadline.ts';
import { withTimeout } from '#core/ledger/timeout.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { KeyRecord, Policies } from '#core/ports/policy.ts';
import { reasonOf } from '#core/reason.ts';
import { err, ok, type Result } from '#core/result.ts';

/** How long an answer is trusted, counted from the moment it was asked for. */
const FRESH: Millis = 5_000;
/** From here on a new answer is fetched while the old one still serves. */
const REFRESH_AFTER: Millis = 3_000;
/** An unknown key is asked for again sooner: it may just have been minted. */
const FRESH_UNKNOWN: Millis = 1_000;
/** A question is over after this time, whatever becomes of it: the next request asks anew. */
const MAX_QUESTION: Millis = 2_000;
const MAX_KNOWN = 10_000;
/** Apart from the known ones, so that a flood of made-up keys pushes out no real one. */
const MAX_UNKNOWN = 10_000;
/** Unknown keys that are looked up at the same time, and that wait for it: made-up keys leave the database to the known ones. */
const MAX_UNKNOWN_QUESTIONS = 4;
const MAX_WAITING = 1_000;

interface Answer {
  readonly record: KeyRecord | undefined;
  readonly askedAt: Millis;
}

/** What was answered, by hash. */
export interface PolicyMemory {
  readonly known: Map<string, Answer>;
  readonly unknown: Map<string, Answer>;
}

export const createPolicyMemory = (): PolicyMemory => ({ known: new Map(), unknown: new Map() });

export interface PolicyCacheDeps {
  readonly policies: Policies;
  readonly clock: Clock;
  readonly timer: Timer;
}

type Found = Result<KeyRecord | undefined, string>;

/**
 * Finds records by hash, immediately where one is fresh. `err`: nobody knows (the database is away and nothing fresh is cached), and why.
 * No request waits longer than a client may; an answer that comes later is for the requests after it.
 */
export type FindPolicy = (hash: string) => Found | Promise<Found>;

export function createPolicyCache(
  { policies, clock, timer }: PolicyCacheDeps,
  { known, unknown } = createPolicyMemory(),
): FindPolicy {
  const questions = new Map<string, Promise<Result<Answer, string>>>();
  const inTurn = createTurns();

  return function findPolicy(hash) {
    const answer = known.get(hash) ?? unknown.get(hash);
    const age = answer === undefined ? FRESH : clock.now() - answer.askedAt;
    if (answer === undefined || age < 0 || age >= (answer.record === undefined ? FRESH_UNKNOWN : FRESH)) {
      return wait(ask(hash));
    }
    if (answer.record !== undefined && age >= REFRESH_AFTER) void ask(hash);
    return ok(answer.record);
  };

  async function wait(question: Promise<Result<Answer, string>>): Promise<Found> {
    try {
      const answered = await withTimeout(timer, REQUEST_DEADLINE, 'the database', question);
      return answered.ok ? ok(answered.value.record) : answered;
    } catch (silence) {
      return err(reasonOf(silence));
    }
  }

  /** One question in the air per key; all requests that ask meanwhile wait for it. */
  function ask(hash: string): Promise<Result<Answer, string>> {
    const asked = questions.get(hash);
    if (asked !== undefined) return asked;
    const question = (known.has(hash) ? askNow(hash) : inTurn(() => askNow(hash))).finally(() =>
      questions.delete(hash),
    );
    questions.set(hash, question);
    return question;
  }

  async function askNow(hash: string): Promise<Result<Answer, string>> {
    const askedAt = clock.now();
    try {
      const record = await withTimeout(timer, MAX_QUESTION, 'the database', policies.find(hash));
      keep(hash, { record, askedAt });
      return ok({ record, askedAt });
    } catch (error) {
      return err(reasonOf(error));
    }
  }

  function keep(hash: string, answer: Answer): void {
    known.delete(hash);
    unknown.delete(hash);
    const [kept, max] = answer.record === undefined ? [unknown, MAX_UNKNOWN] : [known, MAX_KNOWN];
    kept.set(hash, answer);
    for (const oldest of kept.keys()) {
      if (kept.size <= max) break;
      kept.delete(oldest);
    }
  }

  /** A few at a time. A question whose requests have given up meanwhile is not asked any more. */
  function createTurns() {
    const waiting: Array<() => void> = [];
    let running = 0;
    return async function inTurn<T>(work: () => Promise<Result<T, string>>): Promise<Result<T, string>> {
      if (waiting.length >= MAX_WAITING) return err('too many unknown keys are asked for');
      const began = clock.now();
      if (running >= MAX_UNKNOWN_QUESTIONS) await new Promise<void>((resolve) => waiting.push(resolve));
      else running += 1;
      try {
        return clock.now() - began > REQUEST_DEADLINE ? err('too many unknown keys are asked for') : await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    };
  }
}
