// Are very many changed keys in force soon, whatever a statement of their database takes?
import { expect, test } from 'vitest';
import { createCallMerger } from '#adapters/postgres/call-merger.ts';
import type { ScopeWrite } from '#core/ports/registry.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createDatabases } from './databases.ts';
import { createHarness } from './harness.ts';
import { makeInstance, makeKey, makeSecrets } from './objects.ts';

test('ten thousand changed keys are in force after one run, also if each statement of the database takes 200 ms', async () => {
  // An eighth of the keys in an eighth of the time for steps.
  const [count, time, transaction] = [10_000 / 8, 50_000 / 8, 10 * 200];
  const databases = createDatabases({ openDatabase: undefined, clock: { now: () => 0 }, before: () => undefined });
  const memory = databases.open('gateway');
  const putScope = createCallMerger(500, async (writes: ReadonlyArray<ScopeWrite>) => {
    await new Promise((resolve) => setImmediate(resolve));
    harness.clock.pass(transaction);
    return writes.map(memory.putScope);
  });
  const harness = createHarness({ openDatabase: () => ({ ...memory, putScope }) });
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.apply(...Array.from({ length: count }, (_, index) => makeKey({}, `key-${index}`)));
  await harness.resync();
  for (let index = 0; index < count; index += 1)
    await harness.edit(virtualKeys, `key-${index}`, { spec: { blocked: true } });
  const from = harness.clock.now();
  expect((await harness.resync()).actions).toMatchObject({ PutScope: count });
  expect(harness.clock.now() - from).toBeLessThanOrEqual(time);
});
