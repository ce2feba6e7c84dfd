// The reconcile function as a Node process: a server that is called (Knative), or `--once`, one sweep and done (CronJob).
import { createBackends } from '#adapters/backends.ts';
import { createIssuer } from '#adapters/issuer.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { probeShared } from '#adapters/redis/probe.ts';
import { createReconcile, type ReconcileDeps } from '../../functions/reconcile/app.ts';
import { termsOf } from '../../functions/reconcile/certificates/view.ts';
import { openApi } from '../api-access.ts';
import { ReconcileEnvironment, readEnvironment } from '../env.ts';
import { nodeDependencies } from '../node.ts';
import { main, processLog, runServer } from '../process.ts';

main(async () => {
  const environment = readEnvironment(ReconcileEnvironment, process.env);
  const log = processLog('reconcile', environment.LOG_LEVEL);
  const api = await openApi(environment);
  const backends = createBackends({
    openDatabase: (connection) => createDatabase(connection, { log }),
    // Gateways in Pods of their own book for themselves, within a second.
    flush: async () => undefined,
    probeShared,
  });
  const platform = { servedAt: () => undefined, manyProcesses: environment.GATEWAY_PROCESSES === 'many' };
  const app = createReconcile({
    ...nodeDependencies(),
    cluster: api.cluster,
    backends,
    platform,
    log,
    metrics: createMetrics(),
    ...certificatesOf(environment),
  });
  const close = async () => {
    await backends.close();
    await api.close();
  };
  if (!process.argv.includes('--once')) {
    const server = { fetch: app.fetch, port: environment.PORT, host: environment.HOST };
    return runServer({ log, server, close });
  }
  const answer = await app.request('/', { method: 'POST' });
  process.stdout.write(`${await answer.text()}\n`);
  await close();
  // One object that fails is told in its conditions, and the next run tries again; a cluster that cannot be read is a failed run.
  process.exitCode = answer.ok ? 0 : 1;
});

/** Nothing where the certificate of admission is somebody else's: cert-manager's, or a public one. */
function certificatesOf(environment: ReconcileEnvironment): Pick<ReconcileDeps, 'certificates'> {
  const { ADMISSION_SERVICE: service, ADMISSION_SECRET: secret, ADMISSION_WEBHOOKS: webhooks } = environment;
  if (service === undefined) return {};
  return {
    certificates: { issuer: createIssuer(), service, secret, webhooks, ...termsOf(environment.CERTIFICATE_LIFETIME) },
  };
}
