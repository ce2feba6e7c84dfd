// Routes of the admission function: /SEGMENT/mutate and /SEGMENT/validate; health and readiness at the root.
import { type Context, Hono } from 'hono';
import type { Clock } from '#core/ports/clock.ts';
import type { Timer } from '#core/ports/platform.ts';
import { createDeadline } from './deadline.ts';
import type { createHandle, HandleDeps } from './handle.ts';
import { createRecord, type RecordDeps } from './record.ts';
import type { Verb } from './review.ts';
import type { Hint } from './subject.ts';

export type { Hint } from './subject.ts';

export interface AdmissionDeps extends HandleDeps, RecordDeps {
  readonly clock: Clock;
  readonly timer: Timer;
  /** Unguessable path segments, any of which may stand before /mutate and /validate. Two while one replaces the other. */
  readonly pathSecrets: ReadonlyArray<string>;
  /** Tells reconcile where to look; called after the answer, never on dry run. Losing it costs nothing but time. */
  readonly hint?: (hint: Hint) => Promise<void>;
}

export function createAdmission(deps: AdmissionDeps): Hono {
  const { clock, timer, log } = deps;
  const isSecret = createPathGuard(deps.pathSecrets);
  const record = createRecord(deps);
  let handle: Promise<ReturnType<typeof createHandle>> | undefined;

  const answer = async (context: Context, verb: Verb): Promise<Response> => {
    const startedAt = clock.now();
    const deadline = createDeadline(timer, context.req.query('timeout'));
    // What a review needs, the schemas above all, is loaded with the first one.
    handle ??= import('./handle.ts').then((module) => module.createHandle(deps));
    const handled = await (await handle)(verb, context.req.raw, deadline.signal).finally(deadline.stop);
    record(verb, handled, clock.now() - startedAt);
    if (handled.hint !== undefined) afterAnswer(context, hintLater(deps, handled.hint));
    return Response.json(handled.body, { status: handled.status });
  };

  const probes = new Hono()
    .get('/healthz', (context) => context.text('ok'))
    .get('/readyz', (context) => context.text('ok'));
  const app = new Hono();
  app.route('/', probes);
  // A request without the segment is answered before anything of it is read.
  app.use('/:segment/:route', async (context, next) =>
    isSecret(context.req.param('segment')) ? next() : context.notFound(),
  );
  // The local stack's address of the function has the segment in it, and its probes are looked for below that.
  app.route('/:segment', probes);
  for (const verb of ['mutate', 'validate'] as const) {
    app.post(`/:segment/${verb}`, (context) => answer(context, verb));
    app.all(`/:segment/${verb}`, (context) => context.text('post an AdmissionReview', 405, { allow: 'POST' }));
  }
  // A client that left while it was still sending, or a bug of ours.
  app.onError((error, context) => {
    log.error('admission failed', { error: error.message });
    return context.text('admission failed: see its log', 500);
  });
  return app;
}

/** Compares in a time that says nothing about how much of a guess was right. */
function createPathGuard(secrets: ReadonlyArray<string>): (segment: string) => boolean {
  const encoder = new TextEncoder();
  const wanted = secrets.filter((secret) => secret !== '').map((secret) => encoder.encode(secret));
  return (segment) => {
    const given = encoder.encode(segment);
    return wanted.map((secret) => isSame(secret, given)).includes(true);
  };
}

function isSame(secret: Uint8Array, given: Uint8Array): boolean {
  let different = secret.length ^ given.length;
  for (let index = 0; index < secret.length; index += 1) different |= (secret[index] ?? 0) ^ (given[index] ?? 0);
  return different === 0;
}

/** Once the answer is on its way. */
async function hintLater({ hint: tell, timer, log }: AdmissionDeps, hint: Hint): Promise<void> {
  await new Promise<void>((resolve) => void timer(0, resolve));
  await tell?.(hint).catch((error: unknown) => log.warn('hint lost', { error: String(error) }));
}

/** On Workers the platform waits for it; a Node process goes on anyway. */
function afterAnswer(context: Context, work: Promise<void>): void {
  try {
    context.executionCtx.waitUntil(work);
  } catch {
    // No execution context: nothing ends the process after an answer.
  }
}
