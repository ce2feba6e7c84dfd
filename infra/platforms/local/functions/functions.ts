// The three functions, with their adapters, in the process of the stack.
import { createAdmission } from '../../../../functions/admission/app.ts';
import type { DatabaseConnection } from '../../../../functions/core/ports/backends.ts';
import type { Cluster, KubeObject } from '../../../../functions/core/ports/cluster.ts';
import { createReconciler } from '../../../../functions/reconcile/app.ts';
import { createBackends } from '../../../adapters/backends/backends.ts';
import { openCounterStore } from '../../../adapters/backends/open-counter-store.ts';
import { createDatabase } from '../../../adapters/postgres/database.ts';
import { createProxyFor } from '../../../adapters/process/proxies.ts';
import { probeShared } from '../../../adapters/redis/probe.ts';
import { createMetrics } from '../../../adapters/telemetry/metrics.ts';
import { createUpstream } from '../../../adapters/upstream/undici.ts';
import { TracesEnvironment } from '../../../runtime/config/environments.ts';
import { RELEASE_IMAGE, RELEASE_VERSION } from '../../../runtime/config/release.ts';
import { readEnvironment } from '../../../runtime/config/variable.ts';
import { withMetrics } from '../../../runtime/node/metrics.ts';
import { nodeDependencies } from '../../../runtime/node/platform.ts';
import { replyMemory } from '../../../runtime/node/reply-memory.ts';
import { type Handler, type ServeOptions, serve } from '../../../runtime/node/serve.ts';
import { createStoreMaintenance } from '../../../runtime/node/store-maintenance.ts';
import { openTraces } from '../../../runtime/node/traces.ts';
import { createReviewRecord } from '../../../runtime/triggers/review-record.ts';
import { createTrigger } from '../../../runtime/triggers/trigger.ts';
import type { Accounts } from '../cluster/accounts.ts';
import type { Certificates } from '../cluster/certificates.ts';
import type { StartContext } from '../start.ts';
import { onFreePort, portOf } from '../state/ports.ts';
import { gatewayFront } from './front.ts';
import { createGateways, type Gateways } from './gateways.ts';

export interface FunctionsOptions {
  readonly cluster: Cluster;
  /** The accounts of the webhook and the reconciler; `cluster`: for tasks that a kubelet has in a real cluster. */
  readonly accounts: Accounts;
  readonly certificates: Certificates;
  /** A port that is free; another one if that is taken meanwhile. */
  readonly pickGatewayPort: () => Promise<number>;
}

type ServeContext = Pick<StartContext, 'state' | 'log' | 'onStop'>;

/** Milliseconds that open streams get to end, so that a whole stop takes less than 15 s. */
const GRACE = 6_000;

/**
 * Starts the functions. Returns their addresses, that of the webhook with its path segment. A stop accepts no new
 * requests, lets streams end, and books their costs.
 */
export async function startFunctions(context: ServeContext, options: FunctionsOptions) {
  const { state } = context;
  const { accounts, certificates, cluster, pickGatewayPort } = options;
  const parts = await openParts(context);

  const gateways = openGateways(parts.gateway, cluster);
  const handle = gatewayFront({ ...parts.gateway, gateways });
  const gateway = await listen(parts.gateway, { handle, pick: pickGatewayPort });

  const { fetch: run } = reconcileOf({ ...parts.reconcile, accounts, gateways, gateway });
  // The gateways follow the snapshots that a run has published. In a cluster, the kubelet mounts them.
  const runAndFollow = async (request: Request) => {
    const response = await run(request);
    if (request.method === 'POST') gateways.refresh();
    return response;
  };
  const resync = withMetrics(parts.reconcile.metrics, runAndFollow);
  const reconcile = await listen(parts.reconcile, { fetch: resync, pick: () => portOf(state, 'reconcile') });

  const segment = Buffer.from(parts.admission.random(24)).toString('base64url');
  const { fetch: review } = admissionOf({ ...parts.admission, accounts, segment, reconcile });
  const admit = withMetrics(parts.admission.metrics, review);
  const pick = () => portOf(state, 'admission');
  const admission = await listen(parts.admission, { fetch: admit, pick, tls: certificates });

  // The gateways start now, and first book the content of their journals.
  gateways.refresh();
  return { gateway, reconcile, admission: `${admission}/${segment}` };
}

/** Each function has its own metrics, and its name in traces and log lines, as on other platforms. */
async function openParts({ state, log, onStop }: ServeContext) {
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

/** A stop has the opposite order: a server waits for its open requests before the parts that they need are closed. */
async function listen(
  { traces, onStop }: Parts,
  { pick, ...options }: Handler & Pick<ServeOptions, 'tls'> & { readonly pick: () => Promise<number> },
): Promise<string> {
  const server = await onFreePort(pick, (port) => serve({ ...options, port, host: '127.0.0.1', traces }));
  onStop(() => server.close(GRACE));
  return server.url;
}

function openGateways({ state, onStop, log, metrics }: Parts, cluster: Cluster): Gateways {
  const upstream = createUpstream({ proxyFor: createProxyFor(process.env) });
  onStop(upstream.close);
  const gateways = createGateways({ cluster, folder: state.path('journal'), upstream, log, metrics });
  onStop(gateways.close);
  return gateways;
}

type With<T> = Parts & Pick<FunctionsOptions, 'accounts'> & T;

function reconcileOf({ accounts, gateways, gateway, ...parts }: With<{ gateways: Gateways; gateway: string }>) {
  const { onStop, log } = parts;
  const { clear } = createStoreMaintenance({ ...parts, open: openCounterStore });
  const openDatabase = (connection: DatabaseConnection) => createDatabase(connection, { log });
  const backends = createBackends({
    ...parts,
    openDatabase,
    flush: gateways.flush,
    clear,
    probeShared,
    maxReplyBytes: replyMemory(),
  });
  onStop(backends.close);
  const platform = {
    servedAt: ({ metadata: { namespace, name } }: KubeObject) => `${gateway}/${namespace}/${name}`,
    gatewayImage: RELEASE_IMAGE,
    version: RELEASE_VERSION,
    manyProcesses: false,
    inCluster: false,
  };
  return createReconciler({ ...parts, cluster: accounts.reconcile, backends, platform });
}

function admissionOf({ accounts, segment, reconcile, ...parts }: With<{ segment: string; reconcile: string }>) {
  const trigger = createTrigger({ address: reconcile, send: parts.traces.sent(fetch) });
  const own = accounts.ownUser === undefined ? [] : [accounts.ownUser];
  const record = createReviewRecord({ ...parts, trigger });
  return createAdmission({ ...parts, cluster: accounts.admission, exemptUsers: own, pathSecrets: [segment], record });
}
