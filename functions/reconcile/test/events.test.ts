// Conditions show since when they have their status.
import { beforeEach, expect, test } from 'vitest';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey(), makeUser(), makeTeam());
});

const objects = [
  [gatewayInstances, 'main'],
  [virtualKeys, 'chat'],
  [virtualKeys, 'alice'],
  [users, 'alice'],
  [teams, 'research'],
] as const;

const conditions = async () => {
  const found = await Promise.all(
    objects.map(async ([kind, name]) => {
      const status = await harness.status(kind, name);
      return (status.conditions ?? []).map(
        (one) => [`${kind.kind}/${name} ${one.type} ${one.status}`, one.lastTransitionTime] as const,
      );
    }),
  );
  return new Map(found.flat());
};

test('every condition of every kind keeps its transition time through edits, an outage and a new process', async () => {
  await harness.resync();
  const before = await conditions();
  expect(before.size).toBeGreaterThan(8);
  harness.clock.pass(60_000);
  for (const [kind, name] of [objects[1], objects[3], objects[4]])
    await harness.edit(kind, name, { spec: { maxBudget: '77' } });
  harness.restart();
  await harness.resync();
  expect(await conditions()).toEqual(before);
  harness.refuse(true);
  harness.clock.pass(60_000);
  await harness.resync();
  const during = await conditions();
  for (const [condition, time] of during)
    expect({ condition, time }).toEqual({ condition, time: before.get(condition) ?? '2026-11-21T12:02:00Z' });
  harness.clock.pass(60_000);
  harness.restart();
  await harness.resync();
  expect(await conditions()).toEqual(during);
});
