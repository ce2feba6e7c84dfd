// How do the three functions run in the stack's one process, with which adapters?
import { createBackends } from '#adapters/backends.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { openStore } from '#adapters/open-store.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { probeShared } from '#adapters/redis/probe.ts';
import { createUpstream } from '#adapters/upstream/undici.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Log, Metrics } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import type { Connection } from '#core/ports/connection.ts';
import { createAdmission } from '../../../functions/admission/app.ts';
import { createReconcile } from '../../../functions/reconcile/app.ts';
import { TracesEnvironment } from '../../config/environments.ts';
import { readEnvironment } from '../../config/read-environment.ts';
import { RELEASE_IMAGE, RELEASE_VERSION } from '../../config/release.ts';
import { withMetrics } from '../../node/metrics.ts';
import { nodeDependencies } from '../../node/platform.ts';
import { type Served, type ServeOptions, serve } from '../../node/serve.ts';
import { createTending } from '../../node/store-maintenance.ts';
import { openTraces } from '../../node/traces.ts';
import type { Accounts } from '../cluster/accounts.ts';
import type { Certificates } from '../cluster/certificates.ts';
import { portOf } from '../state/ports.ts';
import type { State } from '../state/state.ts';
import { gatewayServer } from './front.ts';
import { createGateways, type Gateways } from './gateways.ts';

export interface FunctionDependencies {
  readonly state: State;
  readonly cluster: Cluster;
  /** As whom admission and reconcile speak to it; the gateways are what kubelets would start. */
  readonly accounts: Pick<Accounts, 'admission' | 'reconcile' | 'ownUser'>;
  readonly certificates: Certificates;
  readonly log: Log;
  /** Already known to be free. */
  readonly gatewayPort: number;
}

export interface Functions {
  readonly gateway: Served;
  readonly reconcile: Served;
  /** What stands before /mutate and /validate: its address, and the segment that only the API server is told. */
  readonly admission: string;
  readonly gateways: Gateways;
  /** Takes no new requests, lets open streams end for at most `grace` milliseconds, books what they cost. */
  close(grace: number): Promise<void>;
}

export async function startFunctions(deps: FunctionDependencies): Promise<Functions> {
  const { state, cluster, accounts, certificates, log } = deps;
  const own = accounts.ownUser === undefined ? [] : [accounts.ownUser];
  const node = nodeDependencies();
  const traces = await openOwnTraces(log);
  const logs = {
    admission: traces.admission.logged(log),
    reconcile: traces.reconcile.logged(log),
    gateway: traces.gateway.logged(log),
  };
  const openDatabase = (connection: DatabaseConnection) => createDatabase(connection, { log });

  const metrics = createMetrics();
  const folder = state.path('outbox');
  const upstream = createUpstream();
  const gateways = createGateways({
    ...{ ...node, cluster, openDatabase, folder, upstream, log: logs.gateway, metrics },
  });
  const gateway = await listen(gatewayServer({ gateways, ids: node.ids, log: logs.gateway, metrics }), {
    port: deps.gatewayPort,
    traces: traces.gateway,
  });

  const { clear } = createTending({ open: openStore, ...node, log, metrics });
  const backends = createBackends({ openDatabase, flush: gateways.flush, clear, probeShared });
  const platform = {
    servedAt: ({ metadata }: { metadata: { namespace?: string; name: string } }) =>
      `${gateway.url}/${metadata.namespace}/${metadata.name}`,
    gatewayImage: RELEASE_IMAGE,
    version: RELEASE_VERSION,
    manyProcesses: false,
    inCluster: false,
  };
  const sweeps = createMetrics();
  const reconcile = await listen(
    atRoot(
      sweeps,
      createReconcile({
        ...node,
        cluster: accounts.reconcile,
        backends,
        platform,
        log: logs.reconcile,
        metrics: sweeps,
      }),
    ),
    { port: await portOf(state, 'reconcile'), traces: traces.reconcile },
  );

  const segment = Buffer.from(node.random(24)).toString('base64url');
  const reviews = createMetrics();
  const admission = await listen(
    atRoot(
      reviews,
      createAdmission({
        ...node,
        cluster: accounts.admission,
        own,
        pathSecrets: [segment],
        log: logs.admission,
        metrics: reviews,
      }),
      // Its address has the segment in it: metrics are looked for below that, too.
      ['/metrics', `/${segment}/metrics`],
    ),
    {
      port: await portOf(state, 'admission'),
      tls: { cert: certificates.cert, key: certificates.key },
      traces: traces.admission,
    },
  );

  const close = async (grace: number) => {
    await Promise.allSettled([admission, reconcile, gateway].map((server) => server.close(grace)));
    await gateways.close();
    await backends.close();
    await upstream.close();
    await Promise.all(Object.values(traces).map((each) => each.close()));
  };
  return { gateway, reconcile, admission: `${admission.url}/${segment}`, gateways, close };
}

/** Each function under its own name, as everywhere. */
async function openOwnTraces(log: Log) {
  const environment = readEnvironment(TracesEnvironment, process.env);
  return {
    admission: await openTraces(environment, 'admission', log),
    reconcile: await openTraces(environment, 'reconcile', log),
    gateway: await openTraces(environment, 'gateway', log),
  };
}

interface App {
  fetch(request: Request, connection: Connection): Response | Promise<Response>;
}

const atRoot = (metrics: Metrics, app: App, paths?: ReadonlyArray<string>): App => ({
  fetch: withMetrics(metrics, (...call: Parameters<App['fetch']>) => app.fetch(...call), paths),
});

const listen = (app: App, options: Omit<ServeOptions, 'fetch' | 'host'>) =>
  serve({ fetch: (...call) => app.fetch(...call), host: '127.0.0.1', ...options });
