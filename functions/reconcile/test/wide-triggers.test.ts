// Triggers that load very many objects wait for each other, and others do not wait for them.
import { beforeEach, expect, test } from 'vitest';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeSecrets, makeTeam } from '../../../test/reconcile/objects.ts';

const NAMESPACES = Array.from({ length: 5 }, (_, index) => `team-${index}`);
const TRIGGERS = 4;

let harness: Harness;
let release: () => void;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.resync();
});

/** Creates this number of teams of 250,000 characters in each namespace. The database then answers only when released. */
async function prepare(count: number): Promise<void> {
  const members = Array.from({ length: 1000 }, (_, index) => ({ name: `${index}`.padEnd(245, 'x'), role: 'user' }));
  for (const namespace of NAMESPACES)
    for (let index = 0; index < count; index += 1)
      await harness.apply(makeTeam({ teamAlias: `${namespace}-${index}`, members }, `team-${index}`, namespace));
  const { promise, resolve } = Promise.withResolvers<void>();
  release = resolve;
  harness.onDatabase = () => promise;
  harness.cluster.calls.length = 0;
}

/** The number of triggers that have loaded keys before a database answers. */
async function loaded(): Promise<number> {
  const triggers = NAMESPACES.flatMap((namespace) =>
    Array.from({ length: TRIGGERS }, () => harness.trigger('Team', 'team-0', namespace)),
  );
  const count = () =>
    harness.cluster.calls.filter(({ verb, resource }) => verb === 'list' && resource === virtualKeys).length;
  for (let before = -1; before < count(); ) {
    before = count();
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
  const found = count();
  release();
  await Promise.all(triggers);
  return found;
}

test('at most eight triggers have more than a megabyte of objects in memory at the same time', async () => {
  await prepare(5);
  expect(await loaded()).toBe(8);
  expect(
    harness.cluster.calls.filter(({ verb, resource }) => verb === 'list' && resource === virtualKeys),
  ).toHaveLength(NAMESPACES.length * TRIGGERS);
});

test('triggers with few objects do not wait for each other', async () => {
  await prepare(1);
  expect(await loaded()).toBe(NAMESPACES.length * TRIGGERS);
});
