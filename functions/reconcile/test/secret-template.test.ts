// Labels and annotations of a key's Secret: only those that this platform allows. A key that has others from before
// continues working.
import { beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { OWNED_LABELS } from '#crds/names/group.ts';
import { createHarness, type Harness, URL } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { comparedParts, KEY_UID_ANNOTATION, shapeOf } from '../key/secret-shape.ts';

const FROM_TEMPLATE = 'auth.gateway-operator.dev/from-template';
const MARK = `\${baseURL}`;
const LABEL = 'argocd.argoproj.io/secret-type';
const NOTE = 'reflector.example.com/reflects';
const TEMPLATE = { labels: { [LABEL]: 'cluster', app: 'chat' }, annotations: { [NOTE]: 'a/b' } };

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const secret = async (name = 'chat-key') => (await harness.get(RESOURCES.secrets, name))?.metadata;
const specValid = async () =>
  (await harness.status(virtualKeys, 'chat')).conditions?.find(({ type }) => type === 'SpecValid');
/** A key from the time when its labels were allowed. */
async function keyOfBefore(): Promise<void> {
  harness.secretPrefixes = ['argocd.argoproj.io', 'reflector.example.com'];
  await harness.apply(makeKey({ secretTemplate: TEMPLATE }));
  await harness.resync();
  harness.secretPrefixes = [];
}

test('those of other domains, which the admission webhook did not check, are left out: the key works, and a condition names them', async () => {
  await harness.apply(makeKey({ secretTemplate: TEMPLATE }));
  expect((await harness.resync()).failed).toEqual({});
  expect((await secret())?.labels).toMatchObject({ app: 'chat' });
  expect((await secret())?.labels).not.toHaveProperty([LABEL]);
  expect((await secret())?.annotations).not.toHaveProperty([NOTE]);
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  expect(await specValid()).toMatchObject({
    status: 'False',
    reason: 'SecretMetadataNotAllowed',
    message: expect.stringContaining(`spec.secretTemplate.labels["${LABEL}"]`),
  });
  expect((await harness.resync()).actions).toEqual({});
});

test.each(['owner', 'OWNER', 'grafana_datasource'])('%s, on which other software acts, is left out', async (label) => {
  await harness.apply(makeKey({ secretTemplate: { labels: { [label]: 'helm', app: 'chat' } } }));
  await harness.resync();
  expect((await secret())?.labels).toMatchObject({ app: 'chat' });
  expect((await secret())?.labels).not.toHaveProperty([label]);
  expect(await specValid()).toMatchObject({ status: 'False', reason: 'SecretMetadataNotAllowed' });
});

test('those of a domain that is allowed are written', async () => {
  harness.secretPrefixes = ['reflector.example.com'];
  await harness.apply(makeKey({ secretTemplate: TEMPLATE }));
  await harness.resync();
  expect((await secret())?.annotations).toMatchObject({ [NOTE]: 'a/b' });
  expect((await secret())?.labels).not.toHaveProperty([LABEL]);
});

test('those that a Secret already has stay, whatever else is edited, until they are edited or removed', async () => {
  await keyOfBefore();
  await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '7', secretTemplate: { labels: { app: 'other' } } } });
  await harness.resync();
  expect(await secret()).toMatchObject({
    labels: { [LABEL]: 'cluster', app: 'other' },
    annotations: { [NOTE]: 'a/b' },
  });
  expect((await harness.resync()).actions).toEqual({});
  await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: { labels: { [LABEL]: 'repository' } } } });
  await harness.resync();
  expect((await secret())?.labels).not.toHaveProperty([LABEL]);
  await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: null } });
  await harness.resync();
  expect((await secret())?.annotations).not.toHaveProperty([NOTE]);
  expect(await specValid()).toBeUndefined();
});

test('a Secret with another name does not get them, and a retained Secret keeps them', async () => {
  await keyOfBefore();
  await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
  await harness.resync();
  expect((await secret())?.labels).toMatchObject({ [LABEL]: 'cluster' });
  await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: { name: 'elsewhere' } } });
  await harness.resync();
  expect((await secret('elsewhere'))?.labels).not.toHaveProperty([LABEL]);
  expect(await secret()).toBeUndefined();
});

test('a plan contains the texts of a template as they were written, however long the address is', async () => {
  await harness.apply(makeKey({ secretTemplate: { data: { url: MARK.repeat(64) } } }));
  const key = (await harness.get(virtualKeys, 'chat')) as unknown as VirtualKey;
  const url = `https://${'a'.repeat(2000)}`;
  const address = { url, internalURL: url };
  const shape = shapeOf(key, { name: 'chat-key', address, prefixes: [], present: undefined, previous: undefined });
  // All shapes of an instance have the same address.
  expect(shape.address).toBe(address);
  expect(JSON.stringify({ ...shape, address: undefined }).length).toBeLessThan(2000);
  await harness.resync();
  const { data } = (await harness.get(RESOURCES.secrets, 'chat-key')) as unknown as { data: { url: string } };
  expect(atob(data.url)).toBe(URL.repeat(64));
});

test('nothing is planned for a template with too many placeholders; other keys work', async () => {
  await harness.apply(
    makeKey({ secretTemplate: { data: { url: MARK.repeat(65) } } }),
    makeKey({ keyAlias: 'other' }, 'other'),
  );
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False InvalidSpec');
  const ready = (await harness.status(virtualKeys, 'chat')).conditions?.find(({ type }) => type === 'Ready');
  expect(ready?.message).toContain(
    'spec.secretTemplate.data: Invalid value: may have at most 64 `${` in all its texts',
  );
  expect(await harness.ready(virtualKeys, 'other')).toBe('True Ready');
});

test('of the annotations of a Secret, a run keeps only what may be right', () => {
  const long = 'x'.repeat(250_000);
  const metadata = {
    name: 'chat-key',
    labels: OWNED_LABELS,
    annotations: {
      [KEY_UID_ANNOTATION]: long,
      [FROM_TEMPLATE]: JSON.stringify({ labels: [], annotations: ['example.com/old', 'example.com/note'] }),
      'example.com/old': long,
      'example.com/note': 'as in the template',
      'example.com/of-others': long,
    },
  };
  const { annotations } = comparedParts(metadata, { annotations: { 'example.com/note': 'as in the template' } });
  expect(annotations).toEqual({
    [KEY_UID_ANNOTATION]: '',
    [FROM_TEMPLATE]: metadata.annotations[FROM_TEMPLATE],
    'example.com/old': '',
    'example.com/note': 'as in the template',
  });
});
