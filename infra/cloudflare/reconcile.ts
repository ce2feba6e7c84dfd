// The reconcile function as a Worker: a cron trigger every minute, and hints from admission.
import { createBackends } from '#adapters/backends.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createReconcile } from '../../functions/reconcile/app.ts';
import { type WorkerEnvironment, workerCluster, workerDependencies, workerLog } from './worker.ts';

const metrics = createMetrics();

export default {
  /** Reached by service bindings only; give the Worker no public route. */
  fetch: (request: Request, environment: WorkerEnvironment) => run(environment, request),
  scheduled: async (_: unknown, environment: WorkerEnvironment) => {
    const answer = await run(environment, new Request('https://reconcile/', { method: 'POST' }));
    if (!answer.ok) throw new Error(`the sweep answered ${answer.status}: ${await answer.text()}`);
  },
};

/** I/O belongs to one invocation on Workers: databases are opened for it, and closed when it ends. */
async function run(environment: WorkerEnvironment, request: Request): Promise<Response> {
  const log = workerLog('reconcile');
  const backends = createBackends({
    openDatabase: (connection) => createDatabase(connection, { log }),
    flush: async () => undefined,
  });
  try {
    const app = createReconcile({
      ...workerDependencies(),
      cluster: workerCluster(environment),
      backends,
      // A Worker is many processes: counters in memory would be one each.
      platform: { servedAt: () => undefined, manyProcesses: true },
      log,
      metrics,
    });
    return await app.fetch(request);
  } finally {
    await backends.close();
  }
}
