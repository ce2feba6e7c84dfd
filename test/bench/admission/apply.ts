// Cost of admission for an apply on a real API server, by the number of keys.
import { setTimeout as pause } from 'node:timers/promises';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { CONNECTION, GOOD, modelEntry, objectOf, secretOf } from '../../admission/fixtures.ts';
import { type Harness, openHarness } from '../../admission/harness.ts';
import { whyNoControlPlane } from '../../support/control-plane.ts';
import { median, table } from '../table.ts';
import { copyInEtcd } from './etcd-keys.ts';
import { percentile } from './load.ts';

const UNJUDGED = 'unjudged';
const WEBHOOKS = ['mutating', 'validating'].map((kind) => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: `${kind}webhookconfigurations`,
  kind: `${kind === 'mutating' ? 'Mutating' : 'Validating'}WebhookConfiguration`,
}));

/** The table, or the reason why there is no API server. */
export async function benchApply({ edits = 200, applies = 15, keys = 100_000 } = {}): Promise<string> {
  const why = whyNoControlPlane();
  if (why !== undefined) return `Added to an apply on a real API server: not measured, ${why}.`;
  const harness = await openHarness('real');
  try {
    await prepare(harness);
    const few = await measure(harness, edits, applies);
    const original = { folder: `${virtualKeys.group}/${virtualKeys.plural}`, namespace: UNJUDGED, name: 'free' };
    await copyInEtcd(harness.etcd ?? '', original, keys);
    await untilThere(harness, `copy-${keys - 1}`);
    const many = await measure(harness, edits, applies);
    const head = ['edit of a key', 'keys', 'without, p50 ms', 'with', 'added', 'without, p99 ms', 'with', 'added'];
    const rows = [...few.map((row) => insert(row, 2)), ...many.map((row) => insert(row, keys + 2))];
    return `Added to an edit on a real API server, with and without our webhooks in turn: ${edits} requests, ${applies} runs of kubectl.\n\n${table(head, rows)}`;
  } finally {
    await harness.stop();
  }
}

const insert = ([name = '', ...rest]: readonly string[], keys: number): string[] => [name, String(keys), ...rest];

/** Creates a namespace that our webhooks skip, and a key in each. */
async function prepare(harness: Harness): Promise<void> {
  const { cluster } = harness;
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: UNJUDGED } };
  await must(harness.kubectl(['apply', '-f', '-'], JSON.stringify(namespace)));
  const secrets = [
    secretOf('database', { host: 'postgres', user: 'gateway', password: 'x', name: 'gateway' }),
    secretOf('store', { host: 'valkey', port: '6379', password: '' }),
    secretOf('creds-gpt-4o', { apiKey: 'x' }),
  ];
  for (const secret of secrets) await must(harness.kubectl(['apply', '-f', '-'], JSON.stringify(secret)));
  const spec = { ...GOOD.GatewayInstance, models: [modelEntry('gpt-4o')] };
  await mustWrite(cluster.create(gatewayInstances, objectOf('GatewayInstance', spec)));
  await mustWrite(
    cluster.create(users, objectOf('User', { connectionRef: CONNECTION, userEmail: 'alice@example.com' })),
  );
  const notIn = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [UNJUDGED] };
  for (const resource of WEBHOOKS) {
    for (const { metadata, ...rest } of await cluster.list(resource)) {
      const webhooks = (rest.webhooks as object[]).map((one) => ({
        ...one,
        namespaceSelector: { matchExpressions: [notIn] },
      }));
      await mustWrite(cluster.patch(resource, undefined, metadata.name, { webhooks }));
    }
  }
  // The API server learns of changed webhooks by a watch.
  await pause(3000);
  await createKey(harness, 'team-a', 'judged');
  await createKey(harness, UNJUDGED, 'free');
}

/** Waits until the API server sees objects that were written to its etcd, by its own watch. */
async function untilThere({ cluster }: Harness, alias: string): Promise<void> {
  const selection = { fieldSelector: `spec.keyAlias=${alias}` };
  // While it catches up it may not answer at all.
  for (const until = Date.now() + 120_000; Date.now() < until; await pause(1000))
    if ((await cluster.list(virtualKeys, selection).catch(() => [])).length > 0) return;
  throw new Error(`the API server does not see ${alias}`);
}

async function createKey({ cluster }: Harness, namespace: string, name: string): Promise<void> {
  const spec = { ...GOOD.VirtualKey, keyAlias: name, teamRef: undefined, userRef: undefined };
  const object = objectOf('VirtualKey', JSON.parse(JSON.stringify(spec)), { name, namespace });
  await mustWrite(cluster.create(virtualKeys, object));
}

async function measure(harness: Harness, edits: number, applies: number): Promise<string[][]> {
  const places = [
    { namespace: UNJUDGED, name: 'free' },
    { namespace: 'team-a', name: 'judged' },
  ];
  const time = async (
    count: number,
    edit: (place: { namespace: string; name: string }, budget: string) => Promise<void>,
  ) => {
    const took: number[][] = places.map(() => []);
    for (let round = -5; round < count; round += 1) {
      for (const [index, place] of places.entries()) {
        const began = performance.now();
        await edit(place, String(100 + round));
        if (round >= 0) took[index]?.push(performance.now() - began);
      }
    }
    return took;
  };
  const requests = await time(edits, ({ namespace, name }, maxBudget) =>
    mustWrite(harness.cluster.patch(virtualKeys, namespace, name, { spec: { maxBudget } })),
  );
  const runs = await time(applies, async ({ namespace, name }, maxBudget) => {
    const spec = { keyAlias: name, models: ['gpt-4o'], maxBudget, budgetDuration: '30d', connectionRef: CONNECTION };
    const file = JSON.stringify(objectOf('VirtualKey', spec, { name, namespace }));
    await must(harness.kubectl(['apply', '-f', '-'], file));
  });
  return [
    ['the request', ...compare(requests)],
    ['kubectl apply', ...compare(runs)],
  ];
}

function compare([without = [], judged = []]: ReadonlyArray<readonly number[]>): string[] {
  const p99 = (times: readonly number[]) =>
    percentile(
      [...times].sort((one, other) => one - other),
      0.99,
    );
  return [median, p99].flatMap((of) =>
    [of(without), of(judged), of(judged) - of(without)].map((millis) => millis.toFixed(1)),
  );
}

async function must(done: Promise<{ readonly code: number; readonly stderr: string }>): Promise<void> {
  const { code, stderr } = await done;
  if (code !== 0) throw new Error(stderr);
}

async function mustWrite(written: Promise<{ readonly ok: boolean }>): Promise<void> {
  const answer = await written;
  if (!answer.ok) throw new Error(JSON.stringify(answer));
}
