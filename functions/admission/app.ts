// Routes of the admission function: /SEGMENT/mutate and /SEGMENT/validate; health and readiness at the root.
import { type Context, Hono } from 'hono';
import { createHandle, type HandleDeps } from './handle.ts';
import { createPathGuard } from './path-guard.ts';
import type { Verb } from './review.ts';
import type { Hint } from './subject.ts';

export type { Hint } from './subject.ts';

export interface AdmissionDeps extends HandleDeps {
  /** Unguessable path segments, any of which may stand before /mutate and /validate. Two while one replaces the other. */
  readonly pathSecrets: ReadonlyArray<string>;
  /** Tells reconcile where to look; called after the answer, never on dry run. Losing it costs nothing but time. */
  readonly hint?: (hint: Hint) => Promise<void>;
}

export function createAdmission(deps: AdmissionDeps): Hono {
  const handle = createHandle(deps);
  const isSecret = createPathGuard(deps.pathSecrets);
  const { hint: tell, log } = deps;

  const review = async (context: Context, verb: Verb) => {
    const { response, hint } = await handle(verb, context.req.raw);
    if (hint !== undefined && tell !== undefined) {
      afterAnswer(
        context,
        new Promise<void>((resolve) => deps.timer(0, resolve))
          .then(() => tell(hint))
          .catch((error: unknown) => log.warn('hint lost', { error: String(error) })),
      );
    }
    return response;
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
    app.post(`/:segment/${verb}`, (context) => review(context, verb));
    app.all(`/:segment/${verb}`, onlyPost);
  }
  // A client that left while it was still sending, or a bug of ours.
  app.onError((error, context) => {
    log.error('admission failed', { error: error.message });
    return context.text('admission failed: see its log', 500);
  });
  return app;
}

const onlyPost = (context: Context): Response => context.text('post an AdmissionReview', 405, { allow: 'POST' });

/** On Workers the platform waits for it; a Node process goes on anyway. */
function afterAnswer(context: Context, work: Promise<void>): void {
  try {
    context.executionCtx.waitUntil(work);
  } catch {
    // No execution context: nothing ends the process after an answer.
  }
}
