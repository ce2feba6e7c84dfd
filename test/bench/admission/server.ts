// The process under load: `echo` parses and echoes the JSON, `admission` is the function with its log and its metrics.
import { openSync, writeSync } from 'node:fs';
import { Hono } from 'hono';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createFetchTransport } from '#adapters/kubernetes/fetch.ts';
import { createLog } from '#adapters/telemetry/log.ts';
import { createLines } from '#adapters/telemetry/log-output.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { createAdmission } from '../../../functions/admission/app.ts';
import { nodeDependencies } from '../../../infra/runtime/node/platform.ts';
import { serve } from '../../../infra/runtime/node/serve.ts';
import { createReviewRecord } from '../../../infra/runtime/triggers/review-record.ts';
import { createWorld, objectOf, SEGMENT, secretOf } from '../../admission/fixtures.ts';
import { instanceSpec, MODELS } from './reviews.ts';

/** The address of a stand-in for the API server; without one, references are looked up in memory. */
const [what, address] = process.argv.slice(2);

const served = await serve({ fetch: what === 'echo' ? echo() : await admission(), host: '127.0.0.1', port: 0 });
process.on('disconnect', () => process.exit(0));
process.send?.(served.url);

function echo() {
  const app = new Hono();
  app.post('/*', async (context) => context.json(await context.req.json()));
  return app.fetch;
}

async function admission() {
  // Log lines cost a system call, as in a cluster, and are dropped.
  const sink = openSync('/dev/null', 'w');
  const log = createLog({ write: createLines((text) => writeSync(sink, text)).add, fields: { function: 'admission' } });
  const record = createReviewRecord({ log, metrics: createMetrics() });
  return createAdmission({ ...nodeDependencies(), cluster: await clusterOf(), pathSecrets: [SEGMENT], record }).fetch;
}

async function clusterOf(): Promise<Cluster> {
  if (address !== undefined) {
    return createCluster({ request: createFetchTransport({ address, token: 'none', fetch }) });
  }
  const { cluster, put, drop } = await createWorld();
  for (const name of MODELS.slice(2)) await put(RESOURCES.secrets, secretOf(`creds-${name}`, { apiKey: 'x' }));
  await drop(gatewayInstances, 'platform', 'main');
  await put(gatewayInstances, objectOf('GatewayInstance', instanceSpec()));
  return indexed(cluster);
}

/**
 * A cache by name or selector, as in the HTTP stand-in, so that the search of the in-memory cluster is not measured.
 */
function indexed(cluster: Cluster): Cluster {
  const known = new Map<string, Promise<unknown>>();
  const once = <T>(question: string, ask: () => Promise<T>): Promise<T> => {
    const answer = (known.get(question) as Promise<T> | undefined) ?? ask();
    known.set(question, answer);
    return answer;
  };
  return {
    ...cluster,
    get: (resource, namespace, name) =>
      once(`${resource.plural}/${namespace}/${name}`, () => cluster.get(resource, namespace, name)),
    list: (resource, selection) =>
      once(`${resource.plural}?${selection?.fieldSelector}`, () => cluster.list(resource, selection)),
    may: (user, verb, resource, namespace, name) =>
      once(`${verb}/${resource.plural}/${namespace}/${name}`, () => cluster.may(user, verb, resource, namespace, name)),
  };
}
