// Key policies by hash, as PostgreSQL had them at most five seconds ago: a cache that is correct when empty (DESIGN 7).

import { REQUEST_DEADLINE, withTimeout } from '#core/ledger/timeout.ts';
import type { Millis } from '#core/ports/money.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import { reasonOf } from '#core/reason.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { GatewayDeps } from './deps.ts';

/** An answer is trusted for this time, counted from its question. */
const FRESH: Millis = 5_000;
/** After this time a new answer is fetched while the old one still serves. */
const REFRESH_AFTER: Millis = 3_000;
/** An unknown key is looked up again sooner: reconcile may have made it just now. */
const FRESH_UNKNOWN: Millis = 1_000;
/** A question is over after this time, answered or not: the next request asks again. */
const MAX_QUESTION: Millis = 2_000;
const MAX_KEPT = 10_000;
/** Unknown keys that are looked up concurrently, and that wait for it: made-up keys leave the database to known ones. */
const MAX_UNKNOWN_QUESTIONS = 4;
const MAX_WAITING = 1_000;

interface Answer {
  readonly record: KeyRecord | undefined;
  readonly askedAt: Millis;
  /** The record is trusted until then. */
  readonly freshUntil: Millis;
}

export type PolicyMemory = ReturnType<typeof createPolicyMemory>;

/** Answers by hash. Unknown keys stand apart, so that a flood of made-up ones pushes out no real one. */
export const createPolicyMemory = () => ({ known: new Map<string, Answer>(), unknown: new Map<string, Answer>() });

/**
 * Finds records by hash, immediately where one is fresh. `err`: why there is no fresh answer (the database is away).
 * No request waits longer than the request deadline; a later answer serves the requests after it.
 */
export function createPolicyCache(
  { policies, clock, timer }: Pick<GatewayDeps, 'policies' | 'clock' | 'timer'>,
  { known, unknown }: PolicyMemory = createPolicyMemory(),
) {
  const questions = new Map<string, Promise<Result<Answer, string>>>();
  const inTurn = createTurns();

  return async function findPolicy(hash: string): Promise<Result<Answer, string>> {
    const answer = known.get(hash) ?? unknown.get(hash);
    const now = clock.now();
    if (answer === undefined || now < answer.askedAt || now >= answer.freshUntil) return wait(ask(hash));
    if (answer.record !== undefined && now - answer.askedAt >= REFRESH_AFTER) void ask(hash);
    return ok(answer);
  };

  async function wait(question: Promise<Result<Answer, string>>): Promise<Result<Answer, string>> {
    try {
      return await withTimeout(timer, REQUEST_DEADLINE, 'the database', question);
    } catch (error) {
      return err(reasonOf(error));
    }
  }

  /** One pending question per key; all requests that ask meanwhile wait for it. */
  function ask(hash: string): Promise<Result<Answer, string>> {
    const asked = questions.get(hash);
    if (asked !== undefined) return asked;
    const isKnown = known.get(hash) !== undefined;
    const question = (isKnown ? askNow(hash) : inTurn(() => askNow(hash))).finally(() => questions.delete(hash));
    questions.set(hash, question);
    return question;
  }

  async function askNow(hash: string): Promise<Result<Answer, string>> {
    const askedAt = clock.now();
    try {
      const record = await withTimeout(timer, MAX_QUESTION, 'the database', policies.find(hash));
      const [kept, other] = record === undefined ? [unknown, known] : [known, unknown];
      other.delete(hash);
      kept.delete(hash);
      const answer = { record, askedAt, freshUntil: askedAt + (record === undefined ? FRESH_UNKNOWN : FRESH) };
      kept.set(hash, answer);
      // The oldest answer makes room.
      const [oldest] = kept.size > MAX_KEPT ? kept.keys() : [];
      if (oldest !== undefined) kept.delete(oldest);
      return ok(answer);
    } catch (error) {
      return err(reasonOf(error));
    }
  }

  /** Questions run a few at a time. A question whose requests have given up meanwhile is not asked any more. */
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
