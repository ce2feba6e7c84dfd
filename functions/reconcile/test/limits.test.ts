// Runs that may send few requests, as on Workers.
import { expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { limitsFor } from '../limits.ts';

const MINUTE = 60_000;
const REQUESTS = 1000;
const INSTANCES = 20;
const KEYS = 60;

const on = (name: string) => ({ connectionRef: { instanceRef: { name, namespace: 'default' } } });

test('a run sends at most the allowed number of requests, and the runs of some minutes converge everything', async () => {
  const harness = createHarness({ limits: limitsFor(REQUESTS) });
  // Each instance has its own Deployment, which takes the most requests.
  harness.servedAt = 'nobody';
  harness.store = { ok: true };
  const names = Array.from({ length: INSTANCES }, (_, index) => `i${index}`);
  const keys = Array.from({ length: KEYS }, (_, index) => makeKey(on('i7'), `key-${index}`));
  const store: KubeObject[] = makeSecrets();
  await harness.apply(...store, ...names.map((name) => makeInstance({}, name)), ...keys);
  const sent: number[] = [];
  const left: number[] = [];
  for (let minute = 0; minute < 6; minute += 1) {
    harness.cluster.calls.length = 0;
    const { deferredKeys = 0 } = await harness.resync();
    sent.push(harness.cluster.calls.length);
    left.push(deferredKeys);
    harness.clock.pass(MINUTE);
  }
  expect(Math.max(...sent)).toBeLessThanOrEqual(REQUESTS);
  expect(left.at(-1)).toBe(0);
  const statuses = harness.cluster.objects(virtualKeys).map(({ status }) => (status as { keyID?: string }).keyID);
  expect(statuses.filter((id) => id !== undefined)).toHaveLength(KEYS);
  const unseen = harness.cluster.objects(gatewayInstances).filter(({ status }) => status === undefined);
  expect(unseen).toEqual([]);
});

/** A store in memory that gateways outside the cluster read. */
function createSnapshots() {
  const texts = new Map<string, string>();
  const puts: string[] = [];
  const state = { fails: false };
  const orFail = () => {
    if (state.fails) throw new Error('KV is away');
  };
  const snapshots = {
    get: async (path: string) => texts.get(path),
    put: async (path: string, text: string) => {
      orFail();
      puts.push(path);
      texts.set(path, text);
    },
    delete: async (path: string) => void texts.delete(path),
  };
  return { texts, puts, state, snapshots };
}

const elsewhere = { workload: { type: 'External', url: 'https://gateway.example.com' } };
const snapshotOf = (cluster: { objects: ReturnType<typeof createHarness>['cluster']['objects'] }, hash: unknown) =>
  cluster.objects(RESOURCES.configMaps).find(({ metadata }) => metadata.name === `main-${hash}`)?.data;

test('the snapshot of a gateway outside the cluster is pushed with each change, once, also back to an earlier one', async () => {
  const { texts, puts, snapshots } = createSnapshots();
  const harness = createHarness({ snapshots });
  await harness.apply(...makeSecrets(), makeInstance(elsewhere), makeInstance({}, 'inside'));
  const pushed = async () => {
    await harness.resync();
    const { snapshotHash } = await harness.status(gatewayInstances, 'main');
    expect({ 'snapshot.json': texts.get('default/main') }).toEqual(snapshotOf(harness.cluster, snapshotHash));
  };
  await pushed();
  await pushed();
  expect(puts).toEqual(['default/main']);
  await harness.edit(gatewayInstances, 'main', { spec: { blockedMessage: 'Ask us.' } });
  await pushed();
  await harness.edit(gatewayInstances, 'main', { spec: { blockedMessage: null } });
  await pushed();
  expect(puts).toHaveLength(3);
  await harness.remove(gatewayInstances, 'main');
  await harness.resync();
  expect([...texts.keys()]).toEqual([]);
});

test('a snapshot that could not be pushed is reported, and the next run pushes it', async () => {
  const { texts, state, snapshots } = createSnapshots();
  const harness = createHarness({ snapshots });
  await harness.apply(...makeSecrets(), makeInstance(elsewhere));
  state.fails = true;
  expect((await harness.resync()).failed).toEqual({ PushSnapshot: 1 });
  expect(await harness.ready(gatewayInstances, 'main')).toBe('False SnapshotNotPublished');
  state.fails = false;
  expect((await harness.resync()).failed).toEqual({});
  expect(texts.has('default/main')).toBe(true);
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
});
