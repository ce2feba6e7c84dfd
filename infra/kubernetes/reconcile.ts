// The reconcile function as a Node process: plain Kubernetes and Knative.
import { createBackends } from '#adapters/backends.ts';
import { createIssuer } from '#adapters/issuer.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { openStore } from '#adapters/open-store.ts';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import { probeShared } from '#adapters/redis/probe.ts';
import type { Log } from '#core/ports/clock.ts';
import { createReconcile, type ReconcileDeps } from '../../functions/reconcile/app.ts';
import { LIFETIMES } from '../../functions/reconcile/certificates/keep.ts';
import { ReconcileEnvironment } from '../config/environments.ts';
import { RELEASE_VERSION } from '../config/release.ts';
import { readEnvironment } from '../config/variable.ts';
import { openApi } from '../node/api-access.ts';
import { nodeDependencies } from '../node/platform.ts';
import { main, processLog, runServer } from '../node/process.ts';
import { createStoreMaintenance } from '../node/store-maintenance.ts';
import { openTraces } from '../node/traces.ts';
import { requireToken } from '../triggers/token.ts';

main(async () => {
  const environment = readEnvironment(ReconcileEnvironment, process.env);
  const ownLog = processLog('reconcile', environment.LOG_LEVEL);
  const traces = await openTraces(environment, 'reconcile', ownLog);
  const log = traces.logged(ownLog);
  const api = await openApi(environment);
  const node = nodeDependencies();
  const metrics = createMetrics();
  const maintenance = createStoreMaintenance({ open: openStore, ...node, log, metrics });
  const backends = createBackends<Database>({
    clock: node.clock,
    openDatabase: (connection) => createDatabase(connection, { log }),
    clear: maintenance.clear,
    flush: async (uid, store, database) => {
      await maintenance.flush(uid, store, database);
      await retain(environment.RETAIN_MONTHS, database, log);
    },
    probeShared,
  });
  const platform = {
    servedAt: () => undefined,
    gatewayImage: environment.GATEWAY_IMAGE,
    version: RELEASE_VERSION,
    manyProcesses: environment.GATEWAY_PROCESSES === 'many',
    inCluster: environment.KUBECONFIG === undefined,
  };
  const app = createReconcile({
    ...node,
    cluster: api.cluster,
    backends,
    platform,
    log,
    metrics,
    ...certificatesOf(environment),
  });
  const close = async () => {
    await traces.close();
    await backends.close();
    await api.close();
  };
  const fetch = requireToken(environment.RECONCILE_TOKEN, (...call: Parameters<typeof app.fetch>) =>
    app.fetch(...call),
  );
  const server = { fetch, port: environment.PORT, host: environment.HOST, traces };
  return runServer({ log, server, metrics: { ...metrics, port: environment.METRICS_PORT }, close });
});

/** What nobody wants to keep goes in whole months. */
async function retain(months: number | undefined, database: Database, log: Log): Promise<void> {
  if (months === undefined) return;
  const dropped = await database.dropMonths(months);
  if (dropped.length > 0) log.info('months of entries were dropped; their sums stay', { months: dropped });
}

/** Nothing where the certificate of admission is somebody else's: cert-manager's, or a public one. */
const certificatesOf = ({ ADMISSION_SERVICE: service }: ReconcileEnvironment): Pick<ReconcileDeps, 'certificates'> =>
  service === undefined ? {} : { certificates: { issuer: createIssuer(), service, lifetimes: LIFETIMES } };
