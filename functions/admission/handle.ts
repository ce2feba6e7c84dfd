// One review, from its body to its answer: read it, decide with the facts, answer. Loaded with the first review.
import { toSentences } from '#core/finding.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import { reasonOf } from '#core/reason.ts';
import { inTime } from './deadline.ts';
import { type Decision, decide, messageOf } from './decide.ts';
import { toPatch, withDefaults } from './defaults.ts';
import { type Answer, type ReviewRequest, readReview, toReview, type Verb } from './review.ts';
import { type Hint, hintOf, readSubject, type Subject, withObject } from './subject.ts';

export interface HandleDeps {
  readonly cluster: Cluster;
  readonly hash: Hash;
  /** Users whose writes are not validated: our own reconcile identity. */
  readonly own?: ReadonlyArray<string>;
}

/** What became of a review, for its answer and for whoever tells it: the log, the metrics, reconcile. */
export interface Handled {
  readonly status: 200 | 400 | 413 | 500;
  readonly body: unknown;
  readonly result: 'allowed' | 'refused' | 'malformed' | 'failed';
  /** Absent where the body is no review. */
  readonly request?: ReviewRequest;
  /** Absent where there was nothing to decide: an object of others, a deletion, a status, a write of our own. */
  readonly decision?: Decision;
  /** Where reconcile should look: an object was let in for good, or is about to go. */
  readonly hint?: Hint | undefined;
  /** Why it failed. */
  readonly error?: string;
}

/**
 * | what came | answer |
 * |---|---|
 * | a review of an object of ours | 200, `allowed` or not |
 * | a review of anything else, a deletion, a status, our own write | 200, allowed |
 * | no review | 400, what is wrong with the envelope |
 * | a review, but the cluster does not answer in time, or we have a bug | 500: the cluster's `failurePolicy` decides |
 */
export function createHandle({ cluster, hash, own = [] }: HandleDeps) {
  const ours = new Set(own);

  return async (verb: Verb, bytes: Uint8Array, signal: AbortSignal): Promise<Handled> => {
    const review = readReview(bytes);
    if (!review.ok) return problem(400, 'malformed', review.problem);
    const { request } = review;
    const read = readSubject(request, ours);
    if (read.outcome === 'allow') return { ...answered(request, { allowed: true, ...SILENT }), hint: read.hint };
    if (read.outcome === 'deny') return answered(request, { allowed: false, warnings: [], message: read.message });
    try {
      const { subject } = read;
      return verb === 'mutate' ? await mutate(request, subject) : await check(request, subject, signal);
    } catch (error) {
      return { ...problem(500, 'failed', reasonOf(error)), request };
    }
  };

  /** Defaults first: what is filled in is validated too. Warnings are told by /validate, which judges again. */
  async function mutate(request: ReviewRequest, subject: Subject): Promise<Handled> {
    const { json } = subject.object;
    const filled = withDefaults(subject);
    const decision = await decide(withObject(subject, filled));
    const answer: Answer =
      decision.refused.length === 0
        ? { allowed: true, warnings: [], patch: toPatch(json, filled) }
        : { allowed: false, warnings: [], message: messageOf(decision, subject) };
    return { ...answered(request, answer), decision };
  }

  async function check(request: ReviewRequest, subject: Subject, signal: AbortSignal): Promise<Handled> {
    const decision = await inTime(signal, decide(subject, { cluster, hash, user: subject.user }));
    const warnings = toSentences(decision.warned);
    if (decision.refused.length === 0)
      return { ...answered(request, { allowed: true, warnings, patch: [] }), decision, hint: hintOf(subject) };
    return { ...answered(request, { allowed: false, warnings, message: messageOf(decision, subject) }), decision };
  }
}

const SILENT = { warnings: [], patch: [] };

const answered = (request: ReviewRequest, answer: Answer): Handled => ({
  status: 200,
  body: toReview(request.uid, answer),
  result: answer.allowed ? 'allowed' : 'refused',
  request,
});

const REASONS = { 400: 'BadRequest', 413: 'RequestEntityTooLarge', 500: 'InternalError' } as const;

/** A Status, which the API server and kubectl show in its own words. */
export function problem(status: keyof typeof REASONS, result: 'malformed' | 'failed', error: string): Handled {
  const body = {
    apiVersion: 'v1',
    kind: 'Status',
    status: 'Failure',
    reason: REASONS[status],
    code: status,
    message: error,
  };
  return { status, body, result, error };
}
