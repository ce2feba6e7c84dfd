// The reconcile function as a Worker: a cron trigger every minute, and hints from admission.
import { createBackends } from '#adapters/backends.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createReconcile } from '../../functions/reconcile/app.ts';
import { ReconcileBindings, readEnvironment } from '../env.ts';
import { orFail, workerCluster, workerDependencies, workerLog } from './worker.ts';

type Bindings = Readonly<Record<string, unknown>>;

const metrics = createMetrics();

export default {
  /** Reached by service bindings only; give the Worker no public route. */
  fetch: (request: Request, bindings: Bindings) => orFail('reconcile', () => run(bindings, request)),
  scheduled: async (_: unknown, bindings: Bindings) => {
    const answer = await run(bindings, new Request('https://reconcile/', { method: 'POST' }));
    if (!answer.ok) throw new Error(`the sweep answered ${answer.status}: ${await answer.text()}`);
  },
};

/** I/O belongs to one invocation on Workers: databases are opened for it, and closed when it ends. */
async function run(bindings: Bindings, request: Request): Promise<Response> {
  const environment = readEnvironment(ReconcileBindings, bindings);
  const log = workerLog('reconcile');
  const backends = createBackends({
    openDatabase: (connection) => createDatabase(connection, { log }),
    // Gateways run elsewhere and book for themselves.
    flush: async () => undefined,
  });
  try {
    const app = createReconcile({
      ...workerDependencies(),
      cluster: workerCluster(environment),
      backends,
      platform: {
        servedAt: () => undefined,
        gatewayImage: environment.GATEWAY_IMAGE,
        manyProcesses: environment.GATEWAY_PROCESSES === 'many',
      },
      log,
      metrics,
    });
    return await app.fetch(request);
  } finally {
    await backends.close();
  }
}
