// Routes of the admission function: /SEGMENT/mutate and /SEGMENT/validate; health and readiness at the root.
import { type Context, Hono } from 'hono';
import { timingSafeEqual } from 'hono/utils/buffer';
import { createLazy } from '#core/caches/lazy.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Timer } from '#core/ports/platform.ts';
import { createDeadline } from './deadline.ts';
import type { HandleDependencies, ReviewOutcome } from './handle.ts';
import type { Verb } from './review.ts';

export type { Trigger } from './subject.ts';

/** An answered review, for the log, the metrics and the trigger of the reconciler. */
export interface ReviewRecord extends ReviewOutcome {
  readonly verb: Verb;
  readonly millis: number;
}

export interface AdmissionDependencies extends HandleDependencies {
  readonly clock: Clock;
  readonly timer: Timer;
  /**
   * Unguessable path segments, one of which precedes /mutate and /validate. There are two while one replaces the other.
   */
  readonly pathSecrets: ReadonlyArray<string>;
  /** Sentences about what is missing; none: the function is ready. Absent: always ready. */
  readonly readiness?: (() => Promise<ReadonlyArray<string>>) | undefined;
  /** Records every review; the answer does not wait for the promise. */
  readonly record?: (review: ReviewRecord) => Promise<void>;
}

export function createAdmission(deps: AdmissionDependencies): Hono {
  const { clock, timer, record, pathSecrets } = deps;
  // The modules that process reviews, mostly schemas, are loaded with the first review.
  const handle = createLazy(async () => (await import('./handle.ts')).createHandle(deps));

  const answer = async (context: Context, verb: Verb): Promise<Response> => {
    const startedAt = clock.now();
    const deadline = createDeadline(timer, context.req.query('timeout'));
    const reviewed = handle().then((review) => review(verb, context.req.raw, deadline.signal));
    const handled = await reviewed.finally(deadline.stop);
    const recorded = record?.({ ...handled, verb, millis: clock.now() - startedAt });
    if (recorded !== undefined) afterResponse(context, recorded);
    return Response.json(handled.body, { status: handled.status });
  };

  const probes = new Hono()
    .get('/healthz', (context) => context.text('ok'))
    .get('/readyz', async (context) => {
      const missing = (await deps.readiness?.()) ?? [];
      return missing.length === 0 ? context.text('ok') : context.text(`${missing.join('\n')}\n`, 503);
    });
  const app = new Hono();
  app.route('/', probes);
  // A request without the segment is answered before its body is read.
  app.use('/:segment/:route', async (context, next) =>
    (await isAnyOf(pathSecrets, context.req.param('segment'))) ? next() : context.notFound(),
  );
  // The local stack's address of the function contains the segment, and the stack probes below that address.
  app.route('/:segment', probes);
  for (const verb of ['mutate', 'validate'] as const) {
    app.post(`/:segment/${verb}`, (context) => answer(context, verb));
    app.all(`/:segment/${verb}`, (context) => context.text('post an AdmissionReview', 405, { allow: 'POST' }));
  }
  return app;
}

/** Compares with each secret. The time does not depend on how many characters of a guess are right. */
async function isAnyOf(secrets: ReadonlyArray<string>, segment: string): Promise<boolean> {
  const wanted = secrets.filter((secret) => secret !== '').map((secret) => timingSafeEqual(secret, segment));
  return (await Promise.all(wanted)).includes(true);
}

/** Work that continues after the answer: a Worker ends unless it is asked to wait, a Node process continues anyway. */
function afterResponse(context: Context, work: Promise<void>): void {
  try {
    context.executionCtx.waitUntil(work);
  } catch {
    // No execution context: the process does not end after an answer.
  }
}
