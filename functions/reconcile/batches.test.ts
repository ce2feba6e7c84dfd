// Very many keys that have changed since the last sweep: a batch a run, the oldest first.
import { expect, test } from 'vitest';
import { virtualKeys } from '#crds/kinds.ts';
import { createBed } from '../../test/reconcile/bed.ts';
import { makeKey } from '../../test/reconcile/objects.ts';

const BATCH = 5000;
const MORE = 60;

test('what does not fit into a run goes on with the next, and the report says how many keys are left', async () => {
  const bed = createBed();
  // Without an instance each has one thing to be told.
  for (let index = 0; index < BATCH + MORE; index += 1)
    await bed.cluster.create(virtualKeys, makeKey({}, `key-${index}`));
  expect(await bed.sweep()).toMatchObject({ actions: { WriteStatus: BATCH }, deferred: MORE, underWay: MORE });
  expect(bed.metrics.render()).toContain(`gateway_operator_reconcile_deferred_keys ${MORE}`);
  const next = await bed.sweep();
  expect(next.actions).toEqual({ RecordEvent: MORE, WriteStatus: MORE });
  expect(next).not.toHaveProperty('deferred');
  expect(bed.metrics.render()).toContain('gateway_operator_reconcile_deferred_keys 0');
  expect((await bed.sweep()).actions).toEqual({});
});
