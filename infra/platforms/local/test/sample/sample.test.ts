// The sample's key: read from its Secret, whatever the instance shows of it.
import { expect, test } from 'vitest';
import { createHarness } from '../../../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../../../test/reconcile/objects.ts';
import { SAMPLE_KEY, waitForKey } from '../../sample/sample.ts';

test.each([
  ['Full', {}],
  ['Redacted', {}],
  ['Redacted', { secretTemplate: { name: 'elsewhere', data: { OPENAI_API_KEY: `\${key}` } } }],
])("the first call is made with the value in the key's Secret where the instance shows it %s", async (mode, spec) => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance({ keyValueInStatus: mode }), makeKey(spec, SAMPLE_KEY.name));
  await harness.resync();
  const deps = { cluster: harness.cluster, resync: async () => {} };
  const found = await waitForKey(deps, 0);
  expect(found.ok && (await harness.works(found.value))).toBe(true);
});

test('a key that does not work is told in the words of its condition', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({ blocked: true }, SAMPLE_KEY.name));
  await harness.resync();
  const found = await waitForKey({ cluster: harness.cluster, resync: async () => {} }, 0);
  expect(found).toEqual({ ok: false, failure: 'Blocked: spec.blocked is true' });
});
