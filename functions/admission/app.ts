// Routes of the admission function: /SEGMENT/mutate and /SEGMENT/validate; health and readiness at the root.
import { type Context, Hono } from 'hono';
import { timingSafeEqual } from 'hono/utils/buffer';
import type { Clock } from '#core/ports/clock.ts';
import type { Timer } from '#core/ports/platform.ts';
import { createDeadline } from './deadline.ts';
import type { createHandle, HandleDeps, Handled } from './handle.ts';
import type { Verb } from './review.ts';

export type { Hint } from './subject.ts';

/** A review that was answered, for the log, the metrics and reconcile. */
export interface Answered extends Handled {
  readonly verb: Verb;
  readonly millis: number;
}

export interface AdmissionDeps extends HandleDeps {
  readonly clock: Clock;
  readonly timer: Timer;
  /** Unguessable path segments, any of which may stand before /mutate and /validate. Two while one replaces the other. */
  readonly pathSecrets: ReadonlyArray<string>;
  /** Told of every review; the answer does not wait for what it promises. */
  readonly record?: (review: Answered) => Promise<void>;
}

export function createAdmission(deps: AdmissionDeps): Hono {
  const { clock, timer, record, pathSecrets } = deps;
  let handle: Promise<ReturnType<typeof createHandle>> | undefined;

  const answer = async (context: Context, verb: Verb): Promise<Response> => {
    const startedAt = clock.now();
    const deadline = createDeadline(timer, context.req.query('timeout'));
    // What a review needs, the schemas above all, is loaded with the first one.
    handle ??= import('./handle.ts').then((module) => module.createHandle(deps));
    const handled = await (await handle)(verb, context.req.raw, deadline.signal).finally(deadline.stop);
    const recorded = record?.({ ...handled, verb, millis: clock.now() - startedAt });
    if (recorded !== undefined) afterAnswer(context, recorded);
    return Response.json(handled.body, { status: handled.status });
  };

  const probes = new Hono()
    .get('/healthz', (context) => context.text('ok'))
    .get('/readyz', (context) => context.text('ok'));
  const app = new Hono();
  app.route('/', probes);
  // A request without the segment is answered before anything of it is read.
  app.use('/:segment/:route', async (context, next) =>
    (await isAnyOf(pathSecrets, context.req.param('segment'))) ? next() : context.notFound(),
  );
  // The local stack's address of the function has the segment in it, and its probes are looked for below that.
  app.route('/:segment', probes);
  for (const verb of ['mutate', 'validate'] as const) {
    app.post(`/:segment/${verb}`, (context) => answer(context, verb));
    app.all(`/:segment/${verb}`, (context) => context.text('post an AdmissionReview', 405, { allow: 'POST' }));
  }
  return app;
}

/** Compares with each in a time that says nothing about how much of a guess was right. */
async function isAnyOf(secrets: ReadonlyArray<string>, segment: string): Promise<boolean> {
  const wanted = secrets.filter((secret) => secret !== '').map((secret) => timingSafeEqual(secret, segment));
  return (await Promise.all(wanted)).includes(true);
}

/** On Workers the platform waits for it; a Node process goes on anyway. */
function afterAnswer(context: Context, work: Promise<void>): void {
  try {
    context.executionCtx.waitUntil(work);
  } catch {
    // No execution context: nothing ends the process after an answer.
  }
}
