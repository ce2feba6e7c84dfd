// Very many keys that have changed since the last resync: each run takes a batch.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

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

test('writes of one namespace that take long leave room for those of another on the same instance', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance({ allowedNamespaces: { from: 'All' } }));
  // The first key of a namespace waits for the row of the namespace.
  await harness.apply(makeKey({}, 'first-slow', 'slow'), makeKey({}, 'first-other', 'other'));
  await harness.resync();
  for (let index = 0; index < 40; index += 1) await harness.apply(makeKey({}, `key-${index}`, 'slow'));
  await harness.apply(makeKey({}, 'chat', 'other'));
  const [full, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let waiting = 0;
  harness.cluster.inject(async ({ verb, resource, namespace }) => {
    if (namespace === 'slow' && verb === 'create' && resource === RESOURCES.secrets) {
      waiting += 1;
      if (waiting === 24) setTimeout(full.resolve, 50);
      await written.promise;
    }
    // Everything of the other namespace begins when the slow one has as many writes as it may have.
    if (namespace === 'other' && verb === 'patch') await full.promise;
    if (namespace === 'other' && verb === 'create' && resource === RESOURCES.secrets) written.resolve();
    return undefined;
  });
  await harness.resync();
  expect(waiting).toBe(40);
  expect(await harness.ready(virtualKeys, 'chat', 'other')).toBe('True Ready');
});
