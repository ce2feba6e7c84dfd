// Do the objects of one namespace, however large, leave memory to those of the others?
import { expect, test } from 'vitest';
import { gatewayInstances, teams, virtualKeys } from '#crds/kinds/kinds.ts';
import { createMemoryCluster } from '../../../../test/doubles/cluster.ts';
import { memory } from '../../../../test/gateway/memory.ts';
import { createHarness } from '../../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam } from '../../../../test/reconcile/objects.ts';
import { createObjectMemory } from '../../observe/object-memory.ts';
import { loadObjects } from '../../observe/objects.ts';

const MIB = 1024 * 1024;
const everywhere = { look: 'everywhere' } as const;

test('of a namespace whose objects are large some are reported, and those of others are not', async () => {
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
  expect(JSON.stringify(last.conditions)).toContain('take more memory together than a resync has for them');
});

test('what is not kept of Teams and VirtualKeys is reported once, and deleted when it is deleted', async () => {
  const harness = createHarness();
  const members = Array.from({ length: 1000 }, (_, index) => ({ name: `${index}`.padEnd(245, 'x'), role: 'user' }));
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  for (let index = 0; index < 70; index += 1)
    await harness.apply(makeTeam({ teamAlias: `${index}`, members }, `team-${index}`));
  await harness.resync();
  const states = await Promise.all(Array.from({ length: 70 }, (_, index) => harness.ready(teams, `team-${index}`)));
  expect(new Set(states)).toEqual(new Set(['True Ready', 'False InvalidSpec']));
  // Instances are listed last.
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  // Those that got their finalizer are a little larger.
  await harness.resync();
  expect((await harness.resync()).actions).toEqual({});
  const index = states.indexOf('False InvalidSpec');
  await harness.remove(teams, `team-${index}`);
  await harness.resync();
  expect(await harness.get(teams, `team-${index}`)).toBeUndefined();
});

test('what many namespaces keep together has a limit, and the largest give way to the others', () => {
  const objects = createObjectMemory(everywhere);
  const dropped = new Map<string, number>();
  const keep = (namespace: string, length: number) =>
    objects.keep(namespace, 'x'.repeat(length), () => dropped.set(namespace, (dropped.get(namespace) ?? 0) + 1));
  for (let index = 0; index < 64; index += 1) keep('small', MIB / 16);
  for (let turn = 0; turn < 20; turn += 1) for (let index = 0; index < 10; index += 1) keep(`greedy-${index}`, MIB);
  expect(dropped.get('small')).toBe(undefined);
  const greedy = [...dropped.values()].reduce((sum, count) => sum + count, 0);
  expect(200 - greedy).toBeGreaterThan(55);
  expect(200 - greedy).toBeLessThan(64);
});

test('ten thousand ordinary objects of one namespace, and large ones of another, all count for what they are', () => {
  const objects = createObjectMemory(everywhere);
  let dropped = 0;
  for (let index = 0; index < 10_000; index += 1)
    objects.keep('ordinary', makeKey({}, `key-${index}`), () => {
      dropped += 1;
    });
  expect(dropped).toBe(0);
});

test('a trigger whose objects are too large together is left to the next resync', async () => {
  const harness = createHarness();
  const members = Array.from({ length: 1000 }, (_, index) => ({ name: `${index}`.padEnd(245, 'x'), role: 'user' }));
  await harness.apply(...makeSecrets(), makeInstance());
  for (let index = 0; index < 80; index += 1)
    await harness.apply(makeTeam({ teamAlias: `${index}`, members }, `team-${index}`));
  const before = harness.writes();
  await expect(harness.trigger('Team', 'team-0')).rejects.toThrow('503');
  expect(harness.writes()).toBe(before);
  await harness.resync();
  expect(await harness.ready(teams, 'team-0')).toBe('True Ready');
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
  const found = await loadObjects({ ...cluster, listPages }, everywhere);
  expect(found.teams.size + found.malformed.size).toBe(10 * pages);
  expect((await memory()) - before).toBeLessThan(96 * MIB);
});
