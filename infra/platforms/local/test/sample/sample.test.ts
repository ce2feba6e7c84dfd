// The sample's key: read from its Secret, whatever the instance shows of it.
import { expect, test } from 'vitest';
import { virtualKeys } from '../../../../../crds/names/resources.ts';
import { RESOURCES } from '../../../../../functions/core/ports/cluster.ts';
import { createHarness } from '../../../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../../../test/reconcile/objects.ts';
import { readDocuments } from '../../../../packaging/manifests/apply.ts';
import { applySample, renderSample, SAMPLE_KEY, waitForKey } from '../../sample/sample.ts';

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

test('a key is judged by a status of this start, not by that of the last one', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({}, SAMPLE_KEY.name));
  await harness.resync();
  await harness.edit(virtualKeys, SAMPLE_KEY.name, { spec: { blocked: true } });
  const found = await waitForKey({ cluster: harness.cluster, resync: async () => void (await harness.resync()) }, 0);
  expect(found).toEqual({ ok: false, failure: 'Blocked: spec.blocked is true' });
});

test('a start leaves a Secret that a person changed, and gives the others the addresses of this start', async () => {
  const { cluster } = createHarness();
  const remembered = { sampleSecrets: {} as Record<string, string> };
  const rememberSampleSecret = (name: string, hash: string) => {
    remembered.sampleSecrets[name] = hash;
  };
  const start = (port: number) => {
    const database = { host: '127.0.0.1', port, username: 'u', password: 'p', dbname: 'd' };
    const text = renderSample({ database, upstream: `http://127.0.0.1:${port}` }, 'upstream-key');
    return applySample(cluster, readDocuments(text), { remembered, rememberSampleSecret } as never);
  };
  const dataOf = async (name: string) => (await cluster.get(RESOURCES.secrets, 'default', name))?.data;
  expect(await start(1)).toEqual([]);
  await cluster.patch(RESOURCES.secrets, 'default', 'sample-model-small', { data: { apiKey: '' } });
  expect(await start(2)).toEqual(['sample-model-small']);
  expect(await dataOf('sample-model-small')).toMatchObject({ apiKey: '', apiBase: btoa('http://127.0.0.1:1/v1') });
  expect(await dataOf('sample-database')).toMatchObject({ host: btoa('127.0.0.1:2') });
  // A change that is undone is none.
  await cluster.patch(RESOURCES.secrets, 'default', 'sample-model-small', { data: { apiKey: btoa('upstream-key') } });
  expect(await start(3)).toEqual([]);
});
