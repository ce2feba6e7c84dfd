// How does the whole thing come up on one machine, in which order, and how does it go down?
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { createLog } from '#adapters/log.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Log } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import { webhookConfigurations } from '../manifests/webhooks.ts';
import { openAccounts } from './cluster/accounts.ts';
import { type Certificates, openCertificates } from './cluster/certificates.ts';
import { openCluster } from './cluster/cluster.ts';
import { applyKinds, put } from './cluster/manifests.ts';
import { openDatabase } from './database/database.ts';
import { type Functions, startFunctions } from './functions/functions.ts';
import { startTriggers } from './functions/triggers.ts';
import type { Options } from './options.ts';
import type { Progress } from './progress.ts';
import { openLogFile } from './state/log-file.ts';
import { freePort, portOf } from './state/ports.ts';
import type { State } from './state/state.ts';
import { createSampleUpstream } from './upstream/server.ts';

/** What `DIR/endpoints.json` says: addresses are URLs on 127.0.0.1. */
export interface Endpoints {
  readonly pid: number;
  readonly kubeconfig: string;
  readonly cluster: string;
  readonly gateway: string;
  readonly admission: string;
  readonly reconcile: string;
  readonly upstream: string;
  readonly database: DatabaseConnection;
}

export interface Stack {
  readonly endpoints: Endpoints;
  readonly cluster: Cluster;
  /** One full sweep; throws when reconcile does not answer well. */
  sweep(): Promise<void>;
  stop(): Promise<void>;
}

/** Open streams get so long to end: with PostgreSQL and the rest a stop stays under 15 s. */
const GRACE = 6_000;

interface StartContext {
  readonly options: Options;
  readonly state: State;
  readonly progress: Progress;
  readonly interrupted: AbortSignal;
  readonly log: Log;
  /** Stops what was started: in the opposite order. */
  readonly cleanups: Array<() => Promise<void>>;
}

/** Starts everything. Where a step fails, or on an interrupt, what was started is stopped, and this throws. */
export async function startStack(
  options: Options,
  state: State,
  progress: Progress,
  interrupted: AbortSignal,
): Promise<Stack> {
  const file = openLogFile(state.path('stack.log'));
  const log = createLog({ write: file.write });
  const context: StartContext = { options, state, progress, interrupted, log, cleanups: [file.close] };
  try {
    return await unless(interrupted, start(context));
  } catch (error) {
    await stop(context);
    throw error;
  }
}

/** The result, or a throw as soon as there is an interrupt: a step under way is left alone, its programs end with this process. */
export async function unless<T>(interrupted: AbortSignal, result: Promise<T>): Promise<T> {
  interrupted.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(interrupted.reason);
  interrupted.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([result, promise]);
  } finally {
    interrupted.removeEventListener('abort', onAbort);
  }
}

async function stop({ cleanups, log }: StartContext): Promise<void> {
  for (let cleanup = cleanups.pop(); cleanup !== undefined; cleanup = cleanups.pop()) {
    await cleanup().catch((error: unknown) => log.warn('stopping', { error: String(error) }));
  }
}

async function start(context: StartContext): Promise<Stack> {
  const { options, state, interrupted, log, cleanups } = context;
  const step = (text: string) => {
    interrupted.throwIfAborted();
    context.progress.step(text);
  };
  const database = await openDatabase(options, state, log);
  cleanups.push(database.stop);
  step(`database    ${database.description}`);

  const certificates = await openCertificates(state.path('certificates'), new Date());
  const opened = await openCluster({ options, state, certificates, log });
  cleanups.push(opened.stop);
  step(`cluster     ${opened.url}, ${opened.description}`);

  const transport = await createKubeconfigTransport(opened.kubeconfig);
  cleanups.push(transport.close);
  const cluster = createCluster({ request: transport.request });
  await applyKinds(cluster);
  step('kinds       GatewayInstance, VirtualKey, User, Team');

  // It asks for no key, so that an entry with `requiresAuth: false` can be tried as well.
  const upstream = await createSampleUpstream({ port: await portOf(state, 'upstream') });
  cleanups.push(upstream.close);
  const gatewayPort = await portForGateway(options, context.progress);
  const { kubeconfig } = opened;
  const accounts = await openAccounts({ kubeconfig, options, cluster, request: transport.request });
  cleanups.push(accounts.close);
  const functions = await startFunctions({ state, cluster, accounts, certificates, log, gatewayPort });
  cleanups.push(() => functions.close(GRACE));
  await applyWebhooks(cluster, functions, certificates, accounts.ownUser);
  step('functions   admission, reconcile, gateway');

  const post = postTo(functions.reconcile.url);
  const { gateways } = functions;
  const newId = () => crypto.randomUUID();
  const { schedule } = options;
  cleanups.push(
    await startTriggers({
      request: transport.request,
      own: transport.request,
      cluster,
      gateways,
      post,
      newId,
      schedule,
      log,
    }),
  );
  return {
    cluster,
    sweep: () => post({}, ''),
    stop: () => stop(context),
    endpoints: {
      pid: process.pid,
      kubeconfig: opened.kubeconfig,
      cluster: opened.url,
      gateway: functions.gateway.url,
      admission: functions.admission,
      reconcile: functions.reconcile.url,
      upstream: upstream.url,
      database: database.connection,
    },
  };
}

async function applyWebhooks(cluster: Cluster, { admission }: Functions, { ca }: Certificates, ownUser?: string) {
  const target = { type: 'url', base: admission } as const;
  const configurations = webhookConfigurations({ target, caBundle: ca, ...(ownUser === undefined ? {} : { ownUser }) });
  for (const configuration of configurations) await put(cluster, configuration, true);
}

async function portForGateway({ port }: Options, progress: Progress): Promise<number> {
  const free = await freePort(port, 'next');
  if (port !== 0 && free !== port) progress.say(`        port ${port} is taken; the gateway listens on ${free}`);
  return free;
}

function postTo(url: string) {
  return async (headers: Readonly<Record<string, string>>, body: string): Promise<void> => {
    const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(60_000) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`reconcile answered ${answer.status}: ${text}`);
  };
}
