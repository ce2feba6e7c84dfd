// The sample's key: read from its Secret, whatever the instance shows of it.
import { expect, test } from 'vitest';
import { createBed } from '../../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { SAMPLE_KEY, waitForKey } from './sample.ts';

test.each([
  ['Full', {}],
  ['Redacted', {}],
  ['Redacted', { secretTemplate: { name: 'elsewhere', entry: 'OPENAI_API_KEY' } }],
])("the first call is made with the value in the key's Secret where the instance shows it %s", async (mode, spec) => {
  const bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance({ keyValueInStatus: mode }), makeKey(spec, SAMPLE_KEY.name));
  await bed.sweep();
  const deps = { cluster: bed.cluster, sweep: async () => {} };
  const found = await waitForKey(deps, 0);
  expect(found.ok && (await bed.works(found.value))).toBe(true);
});

test('a key that does not work is told in the words of its condition', async () => {
  const bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance(), makeKey({ blocked: true }, SAMPLE_KEY.name));
  await bed.sweep();
  const found = await waitForKey({ cluster: bed.cluster, sweep: async () => {} }, 0);
  expect(found).toEqual({ ok: false, failure: 'Blocked: spec.blocked is true' });
});
