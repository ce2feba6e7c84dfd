// An event reports a database that has lost the data of an instance, and no other database.
import { beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeSecrets } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.resync();
  await harness.resync();
});
const warnings = () => harness.events('main').filter((reason) => reason === 'LedgerEmpty');
/** A database that can be read only after `migrate`, like one with an earlier schema or without a schema. */
const needsMigration = () => {
  let isMigrated = false;
  harness.onDatabase = (method) => {
    isMigrated ||= method === 'migrate';
    if (!isMigrated) throw new Error('relation does not exist');
  };
};

test('the first opening is not reported, nor is a schema of an earlier version that has the instance', async () => {
  needsMigration();
  await harness.resync();
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(warnings()).toEqual([]);
});

test('a database without data of the instance, with or without a schema, is reported once', async () => {
  await harness.edit(RESOURCES.secrets, 'db', { data: { dbname: btoa('empty') } });
  needsMigration();
  await harness.resync();
  await harness.resync();
  expect(warnings()).toHaveLength(1);
  await harness.edit(RESOURCES.secrets, 'db', { data: { dbname: btoa('empty-too') } });
  await harness.resync();
  expect(warnings()).toHaveLength(2);
});
