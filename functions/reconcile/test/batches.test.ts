// Very many keys that have changed since the last resync: each run takes a batch.
import { expect, test } from 'vitest';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness } from '../../../test/reconcile/harness.ts';
import { makeKey } from '../../../test/reconcile/objects.ts';

const BATCH = 5000;
const MORE = 60;

test('keys that do not fit in a run are left to the next, and the report has their number', async () => {
  const harness = createHarness();
  // Without an instance, each key needs one status write.
  for (let index = 0; index < BATCH + MORE; index += 1)
    await harness.cluster.create(virtualKeys, makeKey({}, `key-${index}`));
  expect(await harness.resync()).toMatchObject({ actions: { WriteStatus: BATCH }, deferredKeys: MORE, underWay: MORE });
  expect(await harness.metrics.render()).toContain(`gateway_operator_reconcile_deferred_keys ${MORE}`);
  const next = await harness.resync();
  expect(next.actions).toEqual({ RecordEvent: MORE, WriteStatus: MORE });
  expect(next).not.toHaveProperty('deferredKeys');
  expect(await harness.metrics.render()).toContain('gateway_operator_reconcile_deferred_keys 0');
  expect((await harness.resync()).actions).toEqual({});
});
