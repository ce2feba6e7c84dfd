// How does the whole thing come up on one machine, in which order, and how does it go down?
import { appendFileSync } from 'node:fs';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { createLog } from '#adapters/log.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Log } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import { reasonOf } from '#core/reason.ts';
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

interface Coming {
  readonly options: Options;
  readonly state: State;
  readonly progress: Progress;
  readonly log: Log;
  /** What was started, to be stopped in the opposite order. */
  readonly started: Array<() => Promise<void>>;
}

/** Brings everything up. When something on the way fails, what was started is stopped and the failure is thrown. */
export async function startStack(options: Options, state: State, progress: Progress): Promise<Stack> {
  const log = createLog({ write: writeTo(state.path('stack.log')) });
  const coming: Coming = { options, state, progress, log, started: [] };
  try {
    return await bringUp(coming);
  } catch (error) {
    await bringDown(coming);
    throw error;
  }
}

/** A log that cannot be written (a full disk) never stops what it tells of. Of a folder that was removed its watch tells, once. */
function writeTo(file: string): (line: string) => void {
  let isTold = false;
  return (line) => {
    try {
      appendFileSync(file, line);
      isTold = false;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
      if (!isTold) process.stderr.write(`The log is written here until it can be written again: ${reasonOf(error)}\n`);
      isTold = true;
      process.stderr.write(line);
    }
  };
}

async function bringDown({ started, log }: Coming): Promise<void> {
  for (let stop = started.pop(); stop !== undefined; stop = started.pop()) {
    await stop().catch((error: unknown) => log.warn('stopping', { error: String(error) }));
  }
}

async function bringUp(coming: Coming): Promise<Stack> {
  const { options, state, progress, log, started } = coming;
  const database = await openDatabase(options, state, log);
  started.push(database.stop);
  progress.step(`database    ${database.description}`);

  const certificates = await openCertificates(state.path('certificates'), new Date());
  const opened = await openCluster({ options, state, certificates, log });
  started.push(opened.stop);
  progress.step(`cluster     ${opened.url}, ${opened.description}`);

  const transport = await createKubeconfigTransport(opened.kubeconfig);
  started.push(transport.close);
  const cluster = createCluster({ request: transport.request });
  await applyKinds(cluster);
  progress.step('kinds       GatewayInstance, VirtualKey, User, Team');

  // It asks for no key, so that an entry with `requiresAuth: false` can be tried as well.
  const upstream = await createSampleUpstream({ port: await portOf(state, 'upstream') });
  started.push(upstream.close);
  const gatewayPort = await portForGateway(options, progress);
  const { kubeconfig } = opened;
  const accounts = await openAccounts({ kubeconfig, options, cluster, request: transport.request });
  started.push(accounts.close);
  const functions = await startFunctions({ state, cluster, accounts, certificates, log, gatewayPort });
  started.push(() => functions.close(GRACE));
  await applyWebhooks(cluster, functions, certificates, accounts.ownUser);
  progress.step('functions   admission, reconcile, gateway');

  const post = postTo(functions.reconcile.url);
  const { gateways } = functions;
  const newId = () => crypto.randomUUID();
  const { schedule } = options;
  started.push(
    await startTriggers({
      request: transport.request,
      own: accounts.request,
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
    stop: () => bringDown(coming),
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
