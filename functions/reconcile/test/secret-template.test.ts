// Does the Secret of a key get only labels and annotations that this platform allows, and does a key that had others
// before continue working?
import { beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

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

test('those of other domains, which came past admission, are left out: the key works, and a condition names them', async () => {
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

test('those of a domain that is allowed are written', async () => {
  harness.secretPrefixes = ['reflector.example.com'];
  await harness.apply(makeKey({ secretTemplate: TEMPLATE }));
  await harness.resync();
  expect((await secret())?.annotations).toMatchObject({ [NOTE]: 'a/b' });
  expect((await secret())?.labels).not.toHaveProperty([LABEL]);
});

test('those that a Secret has since before stay, whatever else is edited, until they are edited or taken away', async () => {
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

test('a Secret of another name does not get them, and one that is retained keeps them', async () => {
  await keyOfBefore();
  await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
  await harness.resync();
  expect((await secret())?.labels).toMatchObject({ [LABEL]: 'cluster' });
  await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: { name: 'elsewhere' } } });
  await harness.resync();
  expect((await secret('elsewhere'))?.labels).not.toHaveProperty([LABEL]);
  expect(await secret()).toBeUndefined();
});
