// The reconcile function as a Node process: a server that is called (Knative), `--once`, one sweep and done, or `--listen`, a sweep and then what changes (CronJob).
import { hostname } from 'node:os';
import { createBackends } from '#adapters/backends.ts';
import { createIssuer } from '#adapters/issuer.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { openStore } from '#adapters/open-store.ts';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import { probeShared } from '#adapters/redis/probe.ts';
import type { Log } from '#core/ports/clock.ts';
import { createReconcile, type ReconcileDeps } from '../../functions/reconcile/app.ts';
import { termsOf } from '../../functions/reconcile/certificates/view.ts';
import { ReconcileEnvironment } from '../config/environments.ts';
import { readEnvironment } from '../config/read-environment.ts';
import { RELEASE_VERSION } from '../config/release.ts';
import { openApi } from '../node/api-access.ts';
import { nodeDependencies } from '../node/platform.ts';
import { main, print, processLog, runServer } from '../node/process.ts';
import { createTending } from '../node/store-maintenance.ts';
import { openTraces } from '../node/traces.ts';
import { tellWrites } from '../triggers/changes.ts';
import { requireToken } from '../triggers/token.ts';
import { type Listening, type Swept, startListening } from './listen.ts';

main(async () => {
  const environment = readEnvironment(ReconcileEnvironment, process.env);
  const log = processLog('reconcile', environment.LOG_LEVEL);
  const api = await openApi(environment);
  const traces = await openTraces(environment, 'reconcile', log);
  const node = nodeDependencies();
  const metrics = createMetrics();
  const tending = createTending({ open: openStore, ...node, log, metrics });
  const backends = createBackends<Database>({
    openDatabase: (connection) => createDatabase(connection, { log }),
    clear: tending.clear,
    flush: async (uid, store, database) => {
      await tending.flush(uid, store, database);
      await retain(environment.RETAIN_MONTHS, database, log);
    },
    probeShared,
  });
  let listening: Listening | undefined;
  const platform = {
    servedAt: () => undefined,
    gatewayImage: environment.GATEWAY_IMAGE,
    version: RELEASE_VERSION,
    manyProcesses: environment.GATEWAY_PROCESSES === 'many',
    inCluster: environment.KUBECONFIG === undefined,
  };
  const app = createReconcile({
    ...node,
    cluster: tellWrites(api.cluster, (object) => listening?.wrote(object)),
    backends,
    platform,
    log,
    metrics,
    ...(traces === undefined ? {} : { tracer: traces }),
    ...certificatesOf(environment),
  });
  const close = async () => {
    await traces?.close();
    await backends.close();
    await api.close();
  };
  const ask = async (headers: Readonly<Record<string, string>>, body: string) => {
    const answer = await app.request('/', { method: 'POST', headers, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text;
  };
  if (process.argv.includes('--listen')) {
    const stop = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort());
    listening = startListening({
      ...node,
      cluster: api.cluster,
      request: api.request,
      log,
      lease: environment.LEASE,
      holder: `${hostname()} ${node.ids.next()}`,
      seconds: environment.LISTEN_SECONDS,
      newId: node.ids.next,
      post: ask,
      onSweep: tell,
      signal: stop.signal,
    });
    log.info('listened', { ...(await listening.done) });
    return close();
  }
  if (process.argv.includes('--once')) {
    await ask({}, '').then(
      (report) => tell({ report }),
      (error: Error) => tell({ failed: error.message }),
    );
    return close();
  }
  const fetch = requireToken(environment.RECONCILE_TOKEN, (...call: Parameters<typeof app.fetch>) =>
    app.fetch(...call),
  );
  const server = { fetch, port: environment.PORT, host: environment.HOST };
  return runServer({ log, server, close });
});

/** One object that fails is told in its conditions, and the next run tries again; a cluster that cannot be read is a failed run. */
function tell(sweep: Swept): void {
  print('report' in sweep ? sweep.report : sweep.failed);
  process.exitCode = 'report' in sweep ? 0 : 1;
}

/** What nobody wants to keep goes in whole months. */
async function retain(months: number | undefined, database: Database, log: Log): Promise<void> {
  if (months === undefined) return;
  const dropped = await database.dropMonths(months);
  if (dropped.length > 0) log.info('months of entries were dropped; their sums stay', { months: dropped });
}

/** Nothing where the certificate of admission is somebody else's: cert-manager's, or a public one. */
function certificatesOf(environment: ReconcileEnvironment): Pick<ReconcileDeps, 'certificates'> {
  const { ADMISSION_SERVICE: service, ADMISSION_SECRET: secret, ADMISSION_WEBHOOKS: webhooks } = environment;
  if (service === undefined) return {};
  return {
    certificates: { issuer: createIssuer(), service, secret, webhooks, ...termsOf(environment.CERTIFICATE_LIFETIME) },
  };
}
