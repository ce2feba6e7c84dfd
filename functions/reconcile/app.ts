// The reconciler as an HTTP function: an empty POST is a resync, a CloudEvent names objects, `?dry-run=true` changes
// nothing.
import { Hono } from 'hono/tiny';
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { readText } from './body.ts';
import { beginCertificateCounters } from './certificates/renewal.ts';
import type { ReconcileDependencies } from './deps.ts';
import { PROCESS_LIMITS } from './limits.ts';
import { createMemory } from './memory.ts';
import { beginResyncs, type Report, toText } from './report.ts';
import { dryRun, run } from './run.ts';
import { type RunTarget, toRunTarget } from './run-target.ts';
import { createTriggerQueue } from './triggers.ts';

export type { ReconcileDependencies } from './deps.ts';

/** The number of requests that may wait for a run: each takes one of the 512 connections of a process. */
const MAX_WAITING = 128;
const TOO_MANY = 'too many requests are waiting, for this namespace or in total: the next resync looks at the object';

/**
 * Runs of triggers may overlap: each observes for itself, and the API server and the database refuse writes of a slower
 * run that a faster run has overtaken.
 */
export function createReconciler(deps: ReconcileDependencies, memory = createMemory()): Hono {
  beginResyncs(deps);
  if (deps.certificates !== undefined) beginCertificateCounters(deps.metrics);
  const { resyncs } = deps.limits ?? PROCESS_LIMITS;
  const resyncQueue = createFairLimiter(resyncs, MAX_WAITING);
  const queueTrigger = createTriggerQueue(deps, memory, MAX_WAITING);
  const runFor = async (target: RunTarget): Promise<Report | 'full'> => {
    if (target.look !== 'everywhere') return queueTrigger(target.look === 'at' ? target.namespace : '', target);
    return resyncQueue.isFull('') ? 'full' : resyncQueue.run('', () => run({ deps, memory, target }));
  };
  const app = new Hono();
  app.post('/', async (context) => {
    const { req } = context;
    const body = await readText(req.raw, deps.timer);
    if (!body.ok) return context.json({ error: body.failure.error }, body.failure.status);
    const target = toRunTarget({ header: (name) => req.header(name), body: body.value });
    if (!target.ok) return context.json({ error: target.failure }, 400);
    const dry = req.query('dry-run');
    if (dry !== undefined && dry !== 'true' && dry !== 'false') {
      return context.json({ error: `dry-run is "true" or "false", not ${JSON.stringify(dry)}` }, 400);
    }
    if (dry !== 'true') {
      const report = await runFor(target.value);
      return report === 'full' ? context.json({ error: TOO_MANY }, 429) : context.json(report);
    }
    const plan = await dryRun({ deps, memory, target: target.value });
    if (req.header('accept')?.includes('text/plain') === true) return context.text(toText(plan));
    return context.json({ plan: plan.map(({ sign: _, ...row }) => row) });
  });
  app.get('/healthz', (context) => context.text('ok'));
  app.get('/readyz', async (context) => {
    const missing = (await deps.readiness?.()) ?? [];
    return missing.length === 0 ? context.text('ok') : context.text(`${missing.join('\n')}\n`, 503);
  });
  app.onError((error, context) => {
    deps.log.error('a run ended early: cannot read the cluster', { why: error.message });
    return context.json({ error: `the cluster could not be read: ${error.message}` }, 503);
  });
  return app;
}
