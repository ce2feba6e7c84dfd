// The local stack: database, cluster, sample upstream and the three functions, started in this order and stopped in the
// opposite order.
import { appendFileSync } from 'node:fs';
import { untilAborted } from '../../../functions/core/concurrency/timeout.ts';
import type { Cluster } from '../../../functions/core/ports/cluster.ts';
import { createCluster } from '../../adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '../../adapters/kubernetes/node.ts';
import { createLog } from '../../adapters/telemetry/log.ts';
import { createLines } from '../../adapters/telemetry/log-output.ts';
import { applyKinds, put } from '../../packaging/manifests/apply.ts';
import { type WebhookOptions, webhookConfigurations } from '../../packaging/manifests/webhooks.ts';
import { openAccounts } from './cluster/accounts.ts';
import { openCertificates } from './cluster/certificates.ts';
import { openCluster } from './cluster/cluster.ts';
import { removeWebhooks } from './cluster/installation.ts';
import { openDatabase } from './database/database.ts';
import { startFunctions } from './functions/functions.ts';
import { startSchedule } from './functions/schedule.ts';
import { createSampleUpstream } from './sample-upstream/server.ts';
import type { Progress, Start, StartContext } from './start.ts';
import { gatewayPortOf, onFreePort, portOf } from './state/ports.ts';

export type Stack = Awaited<ReturnType<typeof startStack>>;
/** The content of `DIR/endpoints.json`: addresses are URLs on 127.0.0.1. */
export type Endpoints = Stack['endpoints'];

/** Milliseconds, so that a cluster that does not respond delays no stop beyond 15 s. */
const MAX_WEBHOOK_REMOVAL = 4_000;

/** Starts all parts. If a step fails, or on an interrupt, it stops the started parts and throws. */
export async function startStack({ options, state, progress, interrupted }: Start) {
  const lines = createLines((text) => appendLog(state.path('stack.log'), text));
  process.once('exit', lines.flush);
  const log = createLog({ write: lines.add });
  const stops = new AsyncDisposableStack();
  const onStop = (one: () => Promise<unknown>) =>
    stops.defer(() => one().then(undefined, (error: unknown) => log.warn('stopping', { error: String(error) })));
  const stop = () => stops.disposeAsync();
  const step = (text: string) => {
    interrupted.throwIfAborted();
    progress.step(text);
  };
  const context: StartContext = { options, state, log, onStop };
  try {
    return { ...(await untilAborted(interrupted, start(context, { ...progress, step }))), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A log that cannot be written (a full disk) goes to stderr, and stops nothing. */
function appendLog(file: string, text: string): void {
  try {
    appendFileSync(file, text);
  } catch {
    process.stderr.write(text);
  }
}

async function start(context: StartContext, { step, say }: Progress) {
  const { options, state, onStop } = context;
  const database = await openDatabase(context);
  step(`database    ${database.description}`);

  const certificates = await openCertificates(state.path('certificates'), new Date());
  const { kubeconfig, url, description } = await openCluster(context, certificates);
  step(`cluster     ${url}, ${description}`);

  const { request, close } = await createKubeconfigTransport(kubeconfig);
  onStop(close);
  const cluster = createCluster({ request });
  await applyKinds(cluster);
  step('kinds       GatewayInstance, VirtualKey, User, Team');

  // Without a key, so that entries with `requiresAuth: false` work as well.
  const upstream = await onFreePort(
    () => portOf(state, 'upstream'),
    (port) => createSampleUpstream({ port }),
  );
  onStop(upstream.close);
  const accounts = await openAccounts(context, kubeconfig, cluster);
  const pickGatewayPort = async () => {
    const { port, taken } = await gatewayPortOf(state, options.port);
    if (taken !== undefined) say(`        port ${taken} is taken; the gateway listens on ${port}`);
    return port;
  };
  const functions = await startFunctions(context, { cluster, accounts, certificates, pickGatewayPort });
  const webhooks = { base: functions.admission, caBundle: certificates.ca };
  const { ownUser } = accounts;
  const applied = applyWebhooks(cluster, ownUser === undefined ? webhooks : { ...webhooks, ownUser });
  const remove = () => applied.finally(() => removeWebhooks(cluster, functions.admission));
  // The stack's own clusters stop with it: until the next start has an admission webhook, they reject writes.
  if (options.cluster.type === 'kubeconfig')
    onStop(() => untilAborted(AbortSignal.timeout(MAX_WEBHOOK_REMOVAL), remove()));
  await applied;
  step('functions   admission, reconcile, gateway');

  const { resync, stop } = startSchedule(context, functions.reconcile);
  onStop(stop);
  const addresses = { kubeconfig, cluster: url, ...functions, upstream: upstream.url };
  return { cluster, resync, endpoints: { pid: process.pid, ...addresses, database: database.connection } };
}

async function applyWebhooks(cluster: Cluster, options: WebhookOptions): Promise<void> {
  for (const one of webhookConfigurations(options)) await put(cluster, one, true);
}
