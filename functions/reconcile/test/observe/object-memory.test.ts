// Large objects of one namespace do not take the memory that objects of other namespaces need.
import { expect, test } from 'vitest';
import type { KubeObject } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, virtualKeys } from '#crds/kinds/kinds.ts';
import { createMemoryCluster } from '../../../../test/doubles/cluster.ts';
import { memory } from '../../../../test/gateway/memory.ts';
import { createHarness } from '../../../../test/reconcile/harness.ts';
import {
  makeInstance,
  makeKey,
  makeSecrets,
  makeTeam,
  makeUser,
  PLATFORM,
} from '../../../../test/reconcile/objects.ts';
import { boundsOf, createObjectMemory } from '../../observe/object-memory.ts';
import { loadObjects, type OwnObjectView, toOwnObjectView } from '../../observe/objects.ts';

const MIB = 1024 * 1024;
const everywhere = { look: 'everywhere' } as const;

test('a namespace with large objects is reported, and others are not', async () => {
  const harness = createHarness();
  const env = Array.from({ length: 32 }, (_, index) => ({ name: `E${index}`, value: 'x'.repeat(32_000) }));
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  for (let index = 0; index < 40; index += 1)
    await harness.apply(makeInstance({ paused: true, workload: { env } }, `large-${index}`, 'greedy'));
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  const states = await Promise.all(
    Array.from({ length: 40 }, (_, index) => harness.ready(gatewayInstances, `large-${index}`, 'greedy')),
  );
  const refused = states.filter((state) => state === 'False InvalidSpec');
  expect(refused.length).toBeGreaterThan(20);
  expect(refused.length).toBeLessThan(30);
  const last = await harness.status(gatewayInstances, 'large-9', 'greedy');
  expect(JSON.stringify(last.conditions)).toContain('together need more memory than a resync has for them');
});

type SizedObject = Pick<OwnObjectView, 'metadata' | 'violations'> & { readonly object: { spec: unknown } | undefined };

/** The objects that were dropped, by namespace. */
function createDropRecorder() {
  const dropped = new Map<string, number>();
  const objects = createObjectMemory<SizedObject>(boundsOf(64 * MIB, 'everywhere').scopeObjects, {
    whole: true,
    drop: ({ metadata: { namespace } }) => void dropped.set(namespace, (dropped.get(namespace) ?? 0) + 1),
  });
  return { objects, dropped };
}

const ownOf = (object: KubeObject): SizedObject => {
  const own = toOwnObjectView(JSON.parse(JSON.stringify(object)));
  if (own?.object === undefined) throw new Error('malformed');
  return own;
};

test('all namespaces together have a limit, and objects of the largest are dropped first', () => {
  const { objects, dropped } = createDropRecorder();
  const keep = (namespace: string, bytes: number) => {
    const own = ownOf(makeKey({}, 'chat', namespace));
    objects.keep({ ...own, object: { spec: 'x'.repeat(bytes) } });
  };
  for (let index = 0; index < 64; index += 1) keep('small', MIB / 16);
  for (let turn = 0; turn < 20; turn += 1) for (let index = 0; index < 10; index += 1) keep(`greedy-${index}`, MIB);
  const oversized = objects.oversized().map(({ namespace }) => namespace);
  expect(oversized).not.toContain('small');
  expect(oversized).toHaveLength(6);
  for (const namespace of oversized) expect(dropped.get(namespace)).toBe(20);
  expect(dropped.size).toBe(6);
});

test('ten thousand ordinary objects of one namespace are not counted', () => {
  const { objects, dropped } = createDropRecorder();
  for (let index = 0; index < 10_000; index += 1) objects.keep(ownOf(makeKey({}, `key-${index}`)));
  expect(dropped.size).toBe(0);
});

test('a namespace of 56 Teams with 1,000 members, 500 Users and 2,000 VirtualKeys takes half of its share', () => {
  const { objects, dropped } = createDropRecorder();
  const members = Array.from({ length: 1000 }, (_, index) => ({ name: `${index}`.padEnd(245, 'x'), role: 'user' }));
  const team = ownOf(makeTeam({ members }));
  const user = ownOf(makeUser({ teamRefs: members.slice(0, 8).map(({ name }) => ({ name })) }));
  const key = ownOf(
    makeKey({ metadata: { a: 'x'.repeat(1000) }, models: members.slice(0, 8).map(({ name }) => name) }),
  );
  for (let turn = 0; turn < 2; turn += 1) {
    for (let index = 0; index < 56; index += 1) objects.keep(team);
    for (let index = 0; index < 500; index += 1) objects.keep(user);
    for (let index = 0; index < 2000; index += 1) objects.keep(key);
  }
  expect(dropped.size).toBe(0);
});

test('a resync of very large objects keeps little of them', async () => {
  const cluster = createMemoryCluster({ clock: { now: () => 0 }, ids: { next: () => crypto.randomUUID() } });
  const pages = 100;
  const listPages: typeof cluster.listPages = async (kind, _, onPage) => {
    if (kind !== teams) return;
    for (let page = 0; page < pages; page += 1) {
      const members = Array.from({ length: 1000 }, (_, index) => ({ name: `${page}-${index}`.padEnd(200, 'x') }));
      onPage(
        Array.from({ length: 10 }, (_, index) => {
          const team = makeTeam({ teamAlias: `${page}-${index}`, members }, `team-${page}-${index}`, 'greedy');
          return JSON.parse(JSON.stringify(team));
        }),
        page < pages - 1,
      );
    }
  };
  const before = await memory();
  const found = await loadObjects({ cluster: { ...cluster, listPages }, platform: PLATFORM }, everywhere);
  expect(found.teams.size).toBe(0);
  expect(found.oversizedNamespaces.get('greedy')).toMatchObject({ objects: 10 * pages });
  expect((await memory()) - before).toBeLessThan(96 * MIB);
});
