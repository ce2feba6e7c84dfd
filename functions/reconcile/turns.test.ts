// What becomes of very many keys that changed at once?
import { expect, test } from 'vitest';
import { virtualKeys } from '#crds/kinds.ts';
import { createBed } from '../../test/reconcile/bed.ts';
import { makeKey } from '../../test/reconcile/objects.ts';

const TURN = 5000;
const MORE = 60;

test('what does not fit into a run goes on with the next, and the report says how many keys are left', async () => {
  const bed = createBed();
  // Without an instance each has one thing to be told.
  for (let index = 0; index < TURN + MORE; index += 1)
    await bed.cluster.create(virtualKeys, makeKey({}, `key-${index}`));
  let slow = true;
  bed.cluster.inject(({ verb }) => {
    if (verb === 'patch' && slow) {
      slow = false;
      bed.clock.pass(46_000);
    }
    return undefined;
  });
  expect(await bed.sweep()).toMatchObject({ actions: { WriteStatus: TURN }, later: MORE });
  expect(bed.metrics.render()).toContain(`gateway_operator_reconcile_later{kind="VirtualKey"} ${MORE}`);
  const next = await bed.sweep();
  expect(next.actions).toEqual({ RecordEvent: MORE, WriteStatus: MORE });
  expect(next).not.toHaveProperty('later');
  expect(bed.metrics.render()).toContain('gateway_operator_reconcile_later{kind="VirtualKey"} 0');
  expect((await bed.sweep()).actions).toEqual({});
});

test('while there is time one turn follows another', async () => {
  const bed = createBed();
  for (let index = 0; index < TURN + MORE; index += 1)
    await bed.cluster.create(virtualKeys, makeKey({}, `key-${index}`));
  const report = await bed.sweep();
  expect(report.actions).toEqual({ RecordEvent: TURN + MORE, WriteStatus: TURN + MORE });
  expect(report).not.toHaveProperty('later');
});
