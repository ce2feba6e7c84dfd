// The three functions in the stack's one process, with their adapters.
import { createAdmission } from '../../../functions/admission/app.ts';
import type { Backends, DatabaseConnection } from '../../../functions/core/ports/backends.ts';
import type { Cluster } from '../../../functions/core/ports/cluster.ts';
import type { HttpHandler } from '../../../functions/core/ports/http-exchange.ts';
import type { Platform } from '../../../functions/core/ports/platform.ts';
import { createReconcile } from '../../../functions/reconcile/app.ts';
import { createBackends } from '../../adapters/backends.ts';
import { createMetrics } from '../../adapters/metrics.ts';
import { openStore } from '../../adapters/open-store.ts';
import { createDatabase } from '../../adapters/postgres/database.ts';
import { probeShared } from '../../adapters/redis/probe.ts';
import { createUpstream } from '../../adapters/upstream/undici.ts';
import { TracesEnvironment } from '../../config/environments.ts';
import { readEnvironment } from '../../config/read-environment.ts';
import { RELEASE_IMAGE, RELEASE_VERSION } from '../../config/release.ts';
import { withMetrics } from '../../node/metrics.ts';
import { nodeDependencies } from '../../node/platform.ts';
import { type Served, type ServeOptions, serve } from '../../node/serve.ts';
import { createStoreMaintenance } from '../../node/store-maintenance.ts';
import { openTraces } from '../../node/traces.ts';
import { createHint } from '../../triggers/hint.ts';
import type { Accounts } from '../cluster/accounts.ts';
import type { Certificates } from '../cluster/certificates.ts';
import type { StartContext } from '../start.ts';
import { portOf } from '../state/ports.ts';
import { gatewayFront } from './front.ts';
import { createGateways, type Gateways } from './gateways.ts';

export interface FunctionsOptions {
  readonly cluster: Cluster;
  /** The accounts of admission and reconcile; `cluster` is for what a kubelet does elsewhere. */
  readonly accounts: Accounts;
  readonly certificates: Certificates;
  /** A port that is free. */
  readonly gatewayPort: number;
}

/** Their addresses; admission's with the path segment that its callers must know. */
export interface Functions {
  readonly gateway: string;
  readonly reconcile: string;
  readonly admission: string;
}

type Serving = Pick<StartContext, 'state' | 'log' | 'onStop'>;

/** Milliseconds that open streams get to end: with PostgreSQL and the rest a stop stays below 15 s. */
const GRACE = 6_000;

/** Starts them. A stop takes no new requests, lets open streams end, and books what they cost. */
export async function startFunctions(context: Serving, options: FunctionsOptions): Promise<Functions> {
  const { state } = context;
  const { accounts, certificates, cluster, gatewayPort } = options;
  const parts = await openParts(context);
  const listen = createListen(context);

  const gateways = openGateways(parts.gateway, cluster);
  const gateway = await listen(
    parts.gateway,
    { handle: gatewayFront({ ...parts.gateway, gateways }) },
    { port: gatewayPort },
  );

  const backends = openBackends(parts, gateways);
  const reconciling = reconcileOf(parts.reconcile, { cluster: accounts.reconcile, backends, gateway: gateway.url });
  const followed = followedBy(gateways.refresh, reconciling);
  const reconcile = await listen(parts.reconcile, followed, { port: await portOf(state, 'reconcile') });

  const segment = Buffer.from(parts.admission.random(24)).toString('base64url');
  const admitting = admissionOf(parts.admission, { accounts, segment, reconcile: reconcile.url });
  const admission = await listen(parts.admission, admitting, {
    port: await portOf(state, 'admission'),
    tls: certificates,
    // The address has the segment in it: metrics are looked for below that too.
    metricsAt: ['/metrics', `/${segment}/metrics`],
  });

  // What their outboxes hold is booked first.
  gateways.refresh();
  return { gateway: gateway.url, reconcile: reconcile.url, admission: `${admission.url}/${segment}` };
}

/** What each function gets: metrics of its own, traces and log under its own name, as everywhere. */
async function openParts({ state, log, onStop }: Serving) {
  const environment = readEnvironment(TracesEnvironment, process.env);
  const node = nodeDependencies();
  const open = async (name: 'admission' | 'reconcile' | 'gateway') => {
    const traces = await openTraces(environment, name, log);
    onStop(traces.close);
    return { ...node, state, onStop, traces, log: traces.logged(log), metrics: createMetrics() };
  };
  return { admission: await open('admission'), reconcile: await open('reconcile'), gateway: await open('gateway') };
}

type Parts = Awaited<ReturnType<typeof openParts>>['gateway'];

function openGateways({ state, onStop, log, metrics }: Parts, cluster: Cluster): Gateways {
  const upstream = createUpstream();
  onStop(upstream.close);
  const gateways = createGateways({ cluster, folder: state.path('outbox'), upstream, log, metrics });
  onStop(gateways.close);
  return gateways;
}

function openBackends({ gateway, reconcile }: Readonly<Record<'gateway' | 'reconcile', Parts>>, { flush }: Gateways) {
  const { onStop, log } = reconcile;
  const { clear } = createStoreMaintenance({ ...gateway, open: openStore });
  const openDatabase = (connection: DatabaseConnection) => createDatabase(connection, { log });
  const backends = createBackends({ ...reconcile, openDatabase, flush, clear, probeShared });
  onStop(backends.close);
  return backends;
}

interface Reconciling {
  readonly cluster: Cluster;
  readonly backends: Backends;
  /** The gateways' address. */
  readonly gateway: string;
}

function reconcileOf(parts: Parts, { cluster, backends, gateway }: Reconciling): App {
  const platform: Platform = {
    servedAt: ({ metadata: { namespace, name } }) => `${gateway}/${namespace}/${name}`,
    gatewayImage: RELEASE_IMAGE,
    version: RELEASE_VERSION,
    manyProcesses: false,
    inCluster: false,
  };
  return createReconcile({ ...parts, cluster, backends, platform });
}

/** Whatever a run has published, the gateways follow, as a kubelet has them do elsewhere. */
function followedBy(refresh: () => void, app: App): App {
  return {
    fetch: async (request) => {
      const response = await app.fetch(request);
      if (request.method === 'POST') refresh();
      return response;
    },
  };
}

interface Admitting {
  readonly accounts: Accounts;
  readonly segment: string;
  readonly reconcile: string;
}

function admissionOf(parts: Parts, { accounts, segment, reconcile }: Admitting): App {
  return createAdmission({
    ...parts,
    cluster: accounts.admission,
    own: accounts.ownUser === undefined ? [] : [accounts.ownUser],
    pathSecrets: [segment],
    hint: createHint({ address: reconcile, send: parts.traces.sent(fetch) }),
  });
}

interface App {
  fetch(request: Request): Response | Promise<Response>;
}

type Listening = Pick<ServeOptions, 'port' | 'tls'> & { readonly metricsAt?: ReadonlyArray<string> };

/** Servers that end together: each has open requests to wait for. */
function createListen({ onStop }: Serving) {
  const servers: Served[] = [];
  onStop(() => Promise.allSettled(servers.map((server) => server.close(GRACE))));
  return async (
    { traces, metrics }: Parts,
    app: App | { readonly handle: HttpHandler },
    { metricsAt, ...listening }: Listening,
  ): Promise<Served> => {
    const handler =
      'handle' in app ? app : { fetch: withMetrics(metrics, (request: Request) => app.fetch(request), metricsAt) };
    const server = await serve({ ...listening, ...handler, host: '127.0.0.1', traces });
    servers.push(server);
    return server;
  };
}
