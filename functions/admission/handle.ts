// How is one HTTP request with a review answered? Read, judge, answer; what happened is said in one line.
import type { Clock, Log, Metrics } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import type { Hash, Timer } from '#core/ports/platform.ts';
import { reasonOf } from '#core/reason.ts';
import { type Body, createBodyReader } from './body.ts';
import { createCountdown, toTimeout } from './deadline.ts';
import { type Decision, decide, decideAlone, Undecided } from './decide.ts';
import { withDefaults } from './defaults.ts';
import { toPatch } from './json-patch.ts';
import { createLookup } from './lookup.ts';
import { type Answer, type ReviewRequest, readReview, toReview, type Verb } from './review.ts';
import { type Hint, readSubject, type Subject, withObject } from './subject.ts';
import { toMessage, toWarnings } from './words.ts';

export interface HandleDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly hash: Hash;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Users whose writes are not judged: our own reconcile identity. */
  readonly own?: ReadonlyArray<string>;
}

/** What the API server says that it waits. */
function timeoutOf({ url }: Request): number {
  const query = url.indexOf('?');
  return toTimeout(query === -1 ? null : new URLSearchParams(url.slice(query)).get('timeout'));
}

export interface Handled {
  readonly response: Response;
  /** Present when the object was let in for good: not on dry run, not by /mutate. */
  readonly hint?: Hint;
}

interface Judged {
  readonly answer: Answer;
  readonly decision?: Decision;
  readonly hint?: Hint;
}

/**
 * | what came | answer |
 * |---|---|
 * | a review of an object of ours | 200, `allowed` or not |
 * | a review of anything else, a deletion, a status, our own write | 200, allowed |
 * | no review | 400, what is wrong with the envelope |
 * | more than 7 MiB | 413 |
 * | a review, but the cluster cannot be asked in time, or we have a bug | 500: the cluster's `failurePolicy` decides |
 */
export function createHandle(deps: HandleDeps) {
  const own = new Set(deps.own ?? []);
  const { clock, log, metrics } = deps;
  const labels = createLabels();
  const bodies = createBodyReader();

  async function judge(verb: Verb, request: ReviewRequest, timeout: () => number): Promise<Judged> {
    const read = readSubject(request, own);
    if (read.outcome === 'pass')
      return { answer: LET_IN, ...(read.deleted === undefined ? {} : { hint: read.deleted }) };
    if (read.outcome === 'malformed') return { answer: { allowed: false, warnings: [], message: read.problem } };
    if (verb === 'mutate') return mutate(read.subject);
    const countdown = createCountdown(deps.timer, timeout);
    try {
      const lookup = createLookup(deps, read.subject.user);
      const decision = await decide(read.subject, lookup, countdown);
      return { decision, ...toHint(read.subject, decision), answer: toAnswer(read.subject, decision, []) };
    } finally {
      countdown.stop();
    }
  }

  return (verb: Verb, request: Request): Promise<Handled> => {
    const signal = AbortSignal.timeout(timeoutOf(request));
    return bodies
      .read(request, signal, (body) => handle(verb, request, body))
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
        log.error('admission failed', { verb, error: reasonOf(error) });
        return problem(500, reasonOf(error));
      });
  };

  async function handle(verb: Verb, request: Request, body: Body): Promise<Handled> {
    const startedAt = clock.now();
    if (!body.ok) {
      metrics.add('gateway_operator_admission_reviews_total', labels(verb, '', 'malformed'));
      return problem(body.status, body.problem);
    }
    const review = readReview(body.bytes);
    if (!review.ok) {
      metrics.add('gateway_operator_admission_reviews_total', labels(verb, '', 'malformed'));
      return problem(400, review.problem);
    }
    const { uid, kind, namespace, name, operation, dryRun, userInfo } = review.request;
    const user = userInfo?.username;
    const line = { verb, uid, kind: kind.kind, namespace, name, operation, user, dryRun: dryRun === true };
    const ended = (result: string, ofOurs: string) => {
      metrics.add('gateway_operator_admission_reviews_total', labels(verb, ofOurs, result));
      metrics.observe('gateway_operator_admission_seconds', (clock.now() - startedAt) / 1000, VERBS[verb]);
    };
    try {
      const { answer, decision, hint } = await judge(verb, review.request, () => timeoutOf(request));
      const rules = [...new Set((decision?.refused ?? []).map(({ rule }) => rule))];
      for (const rule of rules) metrics.add('gateway_operator_admission_refusals_total', { rule });
      ended(answer.allowed ? 'allowed' : 'refused', decision === undefined ? 'other' : kind.kind);
      log.info('admission', { ...line, allowed: answer.allowed, rules, millis: clock.now() - startedAt });
      const response = json(200, toReview(uid, answer));
      return hint === undefined ? { response } : { response, hint };
    } catch (error) {
      ended('failed', 'other');
      const why = reasonOf(error);
      log.error('admission failed', { ...line, error: why, millis: clock.now() - startedAt });
      return problem(500, error instanceof Undecided ? why : 'admission failed: see its log');
    }
  }
}

const VERBS = { mutate: { verb: 'mutate' }, validate: { verb: 'validate' } } as const;

/** The same object for the same labels, of which there are few: kinds of others count as `other`. */
function createLabels() {
  const known = new Map<string, Readonly<Record<string, string>>>();
  return (verb: Verb, kind: string, result: string) => {
    const name = `${verb} ${kind} ${result}`;
    const labels = known.get(name) ?? { verb, kind, result };
    known.set(name, labels);
    return labels;
  };
}

const LET_IN: Answer = { allowed: true, warnings: [], patch: [] };

/** Defaults first: what is filled in is judged too. */
async function mutate(subject: Subject): Promise<Judged> {
  const json = withDefaults(subject);
  const decision = await decideAlone(withObject(subject, json));
  return { decision, answer: toAnswer(subject, decision, toPatch(subject.object.json, json)) };
}

function toAnswer(subject: Subject, { refused, warned }: Decision, patch: ReturnType<typeof toPatch>): Answer {
  const warnings = toWarnings(warned);
  if (refused.length === 0) return { allowed: true, warnings, patch };
  return { allowed: false, warnings, message: toMessage(refused, subject) };
}

function toHint({ kind, object, dryRun }: Subject, { refused }: Decision): Pick<Judged, 'hint'> {
  const { namespace, name } = object.metadata;
  if (dryRun || refused.length > 0 || name === undefined) return {};
  return { hint: { apiVersion: kind.apiVersion, kind: kind.kind, namespace, name } };
}

const json = (status: number, body: unknown): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  413: 'RequestEntityTooLarge',
  500: 'InternalError',
};

/** A Status, which the API server and kubectl show in its own words. */
function problem(code: number, message: string): Handled {
  const status = { apiVersion: 'v1', kind: 'Status', status: 'Failure', reason: REASONS[code], code, message };
  return { response: json(code, status) };
}
