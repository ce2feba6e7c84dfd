// The handler of one review: reads the body, decides with the facts, responds. Loaded with the first review.

import { untilAborted } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { ok } from '#core/failure/result.ts';
import type { Hash } from '#core/ports/platform.ts';
import { toSentences } from '#core/rules/finding.ts';
import { type BeginWait, createBodyReader, type ReviewBody } from './body.ts';
import { type Decision, decide, refusalTextOf } from './decide.ts';
import { toPatch, withDefaults } from './defaults.ts';
import { type ClusterReads, createReads } from './reads.ts';
import { type RequestHead, type ReviewResponse, readReview, toReview, type Verb } from './review.ts';
import { readSubject, type Subject, type Trigger, triggerOf, withObject, withoutJson } from './subject.ts';

export interface HandleDependencies {
  readonly cluster: ClusterReads;
  readonly hash: Hash;
  /** Domains whose labels and annotations the Secret of a VirtualKey may have. Absent: none. */
  readonly secretPrefixes?: ReadonlyArray<string>;
  /** Users whose writes are not validated: the reconciler's. */
  readonly exemptUsers?: ReadonlyArray<string>;
}

/** The outcome of a review: its response, and what the log, the metrics and the trigger of the reconciler need. */
export interface ReviewOutcome {
  readonly status: 200 | 400 | 413 | 500;
  readonly body: unknown;
  readonly result: 'allowed' | 'refused' | 'malformed' | 'failed';
  /** Absent if the body is no review. */
  readonly request?: RequestHead;
  /** Absent for an object of another kind, a deletion, a status, and a write of the reconciler. */
  readonly decision?: Decision;
  /** The object that the reconciler should look at: it was accepted (not in a dry run), or is about to be deleted. */
  readonly trigger?: Trigger | undefined;
  /** Why the review failed. */
  readonly error?: string;
}

/** `beginWait`: called before the review reads the cluster. */
interface ReviewContext {
  readonly signal: AbortSignal;
  readonly beginWait: BeginWait;
}

/**
 * | body | response |
 * |---|---|
 * | a review of a custom resource of the operator | 200, allowed or not |
 * | a review of anything else, of a deletion, a status, or a write of the reconciler | 200, allowed |
 * | no review | 400, what is wrong with the body |
 * | more than 7 MiB | 413 |
 * | a review, but it or the cluster's replies do not arrive in time, or the webhook has a bug | 500: the
 * `failurePolicy` of the webhook's configuration decides |
 */
export function createHandle({ cluster, hash, exemptUsers = [], secretPrefixes = [] }: HandleDependencies) {
  const exempt = new Set(exemptUsers);
  const readBody = createBodyReader();
  const readsOf = createReads(cluster);

  /** The request without its objects, and what is read of them: a waiting review keeps no more. */
  function readRequest(verb: Verb, body: ReviewBody) {
    const read = body.ok ? readReview(body.value) : body;
    if (!read.ok) return read;
    const { object: _object, oldObject: _old, ...request } = read.value;
    const found = readSubject(read.value, exempt);
    const subject = verb === 'validate' ? found.subject && withoutJson(found.subject) : found.subject;
    return ok({ request, found: { ...found, subject } });
  }

  async function review(verb: Verb, body: ReviewBody, { signal, beginWait }: ReviewContext): Promise<ReviewOutcome> {
    const read = readRequest(verb, body);
    if (!read.ok) return problem(read.failure.status, 'malformed', read.failure.problem);
    const { request, found } = read.value;
    if (found.subject === undefined) return { ...toOutcome(request, found), trigger: found.trigger };
    try {
      if (verb === 'mutate') return await mutate(request, found.subject);
      beginWait(request.namespace ?? '');
      return await check(request, found.subject, signal);
    } catch (error) {
      return { ...problem(500, 'failed', reasonOf(error)), request };
    }
  }

  /**
   * Fills in defaults first, so that they are validated too. Warnings come only from /validate, which validates again.
   */
  async function mutate(request: RequestHead, subject: Subject): Promise<ReviewOutcome> {
    const filled = withObject(subject, withDefaults(subject));
    const decision = await decide(filled);
    const patch = toPatch(subject.object.json, filled.object.json);
    return { ...toOutcome(request, { refusal: refusalTextOf(decision, filled), patch }), decision };
  }

  async function check(request: RequestHead, subject: Subject, signal: AbortSignal): Promise<ReviewOutcome> {
    const reads = readsOf(request.namespace ?? '', signal);
    const decision = await untilAborted(
      signal,
      decide(subject, { cluster: reads, hash, user: subject.user, signal, secretPrefixes }),
    );
    const refusal = refusalTextOf(decision, subject);
    const trigger = refusal === undefined ? triggerOf(subject) : undefined;
    return { ...toOutcome(request, { refusal, warnings: toSentences(decision.warned) }), decision, trigger };
  }

  return async (verb: Verb, request: Request, signal: AbortSignal): Promise<ReviewOutcome> => {
    try {
      return await readBody(request, signal, (body, beginWait) => review(verb, body, { signal, beginWait }));
    } catch (error) {
      // The deadline has passed, or the API server has closed the connection before the whole body was sent.
      return problem(500, 'failed', reasonOf(error));
    }
  };
}

const toOutcome = (request: RequestHead, response: ReviewResponse): ReviewOutcome => ({
  status: 200,
  body: toReview(request.uid, response),
  result: response.refusal === undefined ? 'allowed' : 'refused',
  request,
});

const REASONS = { 400: 'BadRequest', 413: 'RequestEntityTooLarge', 500: 'InternalError' } as const;

/** The response with a Kubernetes Status: the API server and kubectl show its message. */
function problem(status: keyof typeof REASONS, result: 'malformed' | 'failed', error: string): ReviewOutcome {
  const failure = { apiVersion: 'v1', kind: 'Status', status: 'Failure', reason: REASONS[status], code: status };
  return { status, body: { ...failure, message: error }, result, error };
}
