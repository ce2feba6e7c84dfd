// The reconcile function in its own process, as in the cluster: it resyncs on request and reports the cost.

import pg from 'pg';
import { createBackends } from '#adapters/backends/backends.ts';
import { createCluster, type KubeRequest } from '#adapters/kubernetes/cluster.ts';
import { createServiceAccountTransport } from '#adapters/kubernetes/node.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { probeShared } from '#adapters/redis/probe.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { createReconciler } from '../../../functions/reconcile/app.ts';
import type { Report } from '../../../functions/reconcile/report.ts';
import { nodeDependencies } from '../../../infra/runtime/node/platform.ts';
import { replyMemory } from '../../../infra/runtime/node/reply-memory.ts';

export interface Swept {
  readonly report: Report;
  readonly millis: number;
  /** Milliseconds of CPU of the process, user and system. */
  readonly cpuMillis: number;
  /** The largest resident memory so far, in MiB. */
  readonly peak: number;
  readonly statements: number;
  readonly requests: Requests;
}

/** Requests to the API server. */
export interface Requests {
  pages: number;
  secrets: number;
  others: number;
  writes: number;
}

const [address = '', folder = ''] = process.argv.slice(2);

let statements = 0;
const query = pg.Client.prototype.query;
pg.Client.prototype.query = function counted(this: pg.Client, ...args: unknown[]) {
  statements += 1;
  return Reflect.apply(query, this, args);
} as typeof query;

const none = (): Requests => ({ pages: 0, secrets: 0, others: 0, writes: 0 });
let requests = none();
function count({ method, path }: Pick<KubeRequest, 'method' | 'path'>): void {
  if (method !== 'GET') requests.writes += 1;
  else if (path.includes('?limit=')) requests.pages += 1;
  else if (path.includes('/secrets/')) requests.secrets += 1;
  else requests.others += 1;
}

const log = { info: () => undefined, warn: say, error: say };
function say(message: string, fields?: object) {
  process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
}

const transport = createServiceAccountTransport({ address, folder });
const backends = createBackends({
  clock: nodeDependencies().clock,
  maxReplyBytes: replyMemory(),
  openDatabase: (connection) => createDatabase(connection, { log }),
  flush: async () => undefined,
  probeShared,
});
const app = createReconciler({
  ...nodeDependencies(),
  cluster: createCluster({
    request: (request) => {
      count(request);
      return transport.request(request);
    },
  }),
  backends,
  platform: {
    servedAt: () => 'http://gateway.test',
    gatewayImage: 'gateway',
    version: '0.1.0',
    manyProcesses: false,
    inCluster: false,
  },
  log,
  metrics: createMetrics(),
});

process.on('message', async () => {
  statements = 0;
  requests = none();
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  const answer = await app.request('/', { method: 'POST' });
  const report = (await answer.json()) as Report;
  const { user, system } = process.cpuUsage(cpu);
  const swept: Swept = {
    report,
    millis: performance.now() - began,
    cpuMillis: (user + system) / 1000,
    peak: process.resourceUsage().maxRSS / 1024,
    statements,
    requests,
  };
  process.send?.(swept);
});
process.send?.('ready');
