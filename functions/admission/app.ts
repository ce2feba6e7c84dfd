// Which routes does the admission function have?
import { type Context, Hono } from 'hono';
import type { Tracer } from '#core/ports/tracer.ts';
import { createHandle, type HandleDeps } from './handle.ts';
import { createPathGuard } from './path-guard.ts';
import type { Verb } from './review.ts';
import type { Hint } from './subject.ts';
import { traceReview } from './traced.ts';

export type { Hint } from './subject.ts';

export interface AdmissionDeps extends HandleDeps {
  /** Tells reconcile where to look; called after the answer, never on dry run. Losing it costs nothing but time. */
  readonly hint?: (hint: Hint, traceparent?: string) => Promise<void>;
  /** Absent: nobody follows. */
  readonly tracer?: Tracer;
  /** Unguessable path segments, any of which may stand before /mutate and /validate; none: nothing stands there. Two while one replaces the other. */
  readonly pathSecrets?: ReadonlyArray<string>;
}

type Handler = (context: Context) => Response | Promise<Response>;

export function createAdmission(deps: AdmissionDeps): Hono {
  const handle = createHandle(deps);
  const isSecret = createPathGuard(deps.pathSecrets ?? []);
  const { hint: tell, log, tracer } = deps;
  const follow =
    tracer === undefined
      ? async (verb: Verb, request: Request) => ({ handled: await handle(verb, request), place: undefined })
      : (verb: Verb, request: Request) => traceReview(tracer, verb, request, (span) => handle(verb, request, span));

  const review = async (context: Context, verb: Verb) => {
    const { handled, place } = await follow(verb, context.req.raw);
    const { response, hint } = handled;
    if (hint !== undefined && tell !== undefined) {
      afterAnswer(
        context,
        new Promise<void>((resolve) => deps.timer(0, resolve))
          .then(() => tell(hint, place))
          .catch((error: unknown) => log.warn('hint lost', { error: String(error) })),
      );
    }
    return response;
  };

  const app = new Hono();
  const guarded = (answer: Handler): Handler =>
    deps.pathSecrets === undefined
      ? answer
      : (context) => (isSecret(context.req.param('secret') ?? '') ? answer(context) : context.notFound());
  for (const verb of ['mutate', 'validate'] as const) {
    const path = deps.pathSecrets === undefined ? `/${verb}` : `/:secret/${verb}`;
    app.post(
      path,
      guarded((context) => review(context, verb)),
    );
    app.all(path, guarded(onlyPost));
  }
  app.get('/healthz', (context) => context.text('ok'));
  app.get('/readyz', (context) => context.text('ok'));
  app.get('/metrics', (context) =>
    context.text(deps.metrics.render(), 200, { 'content-type': 'text/plain; version=0.0.4' }),
  );
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
