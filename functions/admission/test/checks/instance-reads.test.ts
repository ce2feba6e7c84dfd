// The Secrets that a review of an instance reads: an instance may have 512 model entries, each with its own Secret.
import { describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import { createWorld, GOOD, modelEntry, objectOf, secretOf } from '../../../../test/admission/fixtures.ts';
import { createReviews } from '../../../../test/admission/reviews.ts';

const NAMES = Array.from({ length: 512 }, (_, index) => `m${index}`);
const ENTRIES = NAMES.map((name) => modelEntry(name));
const PRICES = { inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '1' };

/** A world with the Secrets of all model entries, and its reviews. */
async function underTest(mayReadAll = false) {
  const world = await createWorld({ mayReadAll });
  for (const name of NAMES) await world.put(RESOURCES.secrets, secretOf(`creds-${name}`, { apiKey: 'x' }));
  const { review } = createReviews(() => world);
  /** The review of an instance with these model entries, and the names of Secrets that it asked for and read. */
  const edit = async (models: readonly object[], stored?: readonly object[], change = {}, metadata = {}) => {
    const oldObject = stored && objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models: stored }, metadata);
    world.cluster.calls.length = 0;
    const answer = await review('GatewayInstance', { models, ...change }, metadata, oldObject && { oldObject });
    const named = (wanted: string) =>
      world.cluster.calls.flatMap(({ verb, resource, name }) =>
        resource === RESOURCES.secrets && verb === wanted ? [name] : [],
      );
    return { ...answer, asked: named('may'), read: named('get') };
  };
  return { world, edit };
}

describe('an edit of an instance with 512 model entries', () => {
  test('that changes no reference to a Secret reads none', async () => {
    const { world, edit } = await underTest();
    await world.drop(RESOURCES.secrets, 'platform', 'creds-m7');
    await world.drop(RESOURCES.secrets, 'platform', 'database');
    const priced = ENTRIES.map((entry) => ({
      ...entry,
      gatewayParams: { ...(entry.gatewayParams as object), ...PRICES },
    }));
    const accepted = { refused: [], warnings: [], asked: [], read: [] };
    expect(await edit(ENTRIES, ENTRIES, { paused: true })).toEqual(accepted);
    expect(await edit(priced.toReversed(), ENTRIES)).toEqual(accepted);
  });

  test.each<[string, Record<string, unknown>, number]>([
    ['a new name', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'apiKey' } } }, 0],
    ['a missing Secret', { modelCredentials: { nameRef: 'missing', keys: { apiKey: 'apiKey' } } }, 1],
    ['a key that the Secret lacks', { modelCredentials: { nameRef: 'creds-m3', keys: { apiKey: 'token' } } }, 1],
    ['another identifier', { identifier: 'new' }, 0],
  ])('that gives one of them %s reads its Secret, and that of the stored one if it is refused', async (...of) => {
    const [, change, refusals] = of;
    const { edit } = await underTest();
    const models = ENTRIES.with(3, modelEntry('m3', change));
    const { refused, asked, read } = await edit(models, ENTRIES);
    const { nameRef = 'creds-m3' } = (change.modelCredentials ?? {}) as { nameRef?: string };
    expect(refused).toHaveLength(refusals);
    const names = refusals === 0 ? [nameRef] : [nameRef, 'creds-m3'];
    expect(asked).toEqual(names);
    expect(read).toEqual(nameRef === 'missing' ? ['missing', 'creds-m3'] : names);
  });

  test('that gives one of them a provider that needs another credential reads its Secret, and is refused', async () => {
    const { world, edit } = await underTest();
    await world.put(RESOURCES.secrets, secretOf('aws', { awsAccessKeyId: 'x', awsSecretAccessKey: 'x' }));
    const keys = { awsAccessKeyId: 'awsAccessKeyId', awsSecretAccessKey: 'awsSecretAccessKey' };
    const modelCredentials = { nameRef: 'aws', keys };
    const gatewayParams = { apiBase: 'https://host.example/v1', ...PRICES };
    const of = (model: string) => modelEntry('m3', { modelCredentials, gatewayParams: { ...gatewayParams, model } });
    const { refused, read } = await edit(ENTRIES.with(3, of('bedrock/m')), ENTRIES.with(3, of('openai/m')));
    expect([refused, read]).toEqual([[expect.stringContaining('keys.awsRegion: ')], ['aws', 'aws']]);
  });

  test('that names a Secret which a stored model entry names too is refused only for what is new', async () => {
    const { world, edit } = await underTest();
    await world.put(RESOURCES.secrets, secretOf('shared', { apiKey: 'x' }));
    const naming = (name: string, key: string) =>
      modelEntry(name, { modelCredentials: { nameRef: 'shared', keys: { apiKey: key } } });
    const stored = [...ENTRIES.slice(2), naming('old', 'missing-key')];
    const sharing = { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } };
    const good = await edit([...stored, naming('new', 'apiKey')], stored, {}, sharing);
    expect([good.refused, good.read]).toEqual([[], ['shared']]);
    const { refused } = await edit([...stored, naming('new', 'missing-key')], stored, {}, sharing);
    expect(refused).toEqual([expect.stringContaining('for model entry "new"')]);
  });

  test('that changes a model entry whose Secret was missing before is accepted with a warning', async () => {
    const { world, edit } = await underTest();
    await world.drop(RESOURCES.secrets, 'platform', 'creds-m7');
    const moved = { gatewayParams: { model: 'openai/m7', apiBase: 'https://elsewhere.example/v1', ...PRICES } };
    const { refused, warnings, read } = await edit(ENTRIES.with(7, modelEntry('m7', moved)), ENTRIES);
    expect([refused, read]).toEqual([[], ['creds-m7', 'creds-m7']]);
    expect(warnings.join('')).toContain('no readable Secret of this name');
  });

  test('that changes the Secret of the database or of the counter store reads that', async () => {
    const { edit } = await underTest();
    const { databaseSecretRef, redisSecretRef } = GOOD.GatewayInstance;
    const change = { databaseSecretRef: { ...databaseSecretRef, nameRef: 'missing' } };
    expect(await edit(ENTRIES, ENTRIES, change)).toMatchObject({ read: ['missing', 'database'] });
    const keys = { ...redisSecretRef.keys, portSecret: 'missing' };
    expect(await edit(ENTRIES, ENTRIES, { redisSecretRef: { nameRef: 'store', keys } })).toMatchObject({
      refused: [expect.stringContaining('spec.redisSecretRef.keys.portSecret: Not found')],
      read: ['store', 'store'],
    });
  });
});

describe('the creation of an instance with 512 model entries', () => {
  test('by somebody who may read all Secrets of the namespace asks that once, and reads each', async () => {
    const { edit } = await underTest(true);
    const { refused, asked, read } = await edit(ENTRIES);
    expect([refused, asked, new Set(read).size]).toEqual([[], [undefined], 514]);
  });

  test('by somebody who may read only some of them asks for each', async () => {
    const { world, edit } = await underTest();
    await world.put(RESOURCES.secrets, secretOf('not-yours', { apiKey: 'x' }));
    const hidden = modelEntry('m3', { modelCredentials: { nameRef: 'not-yours', keys: { apiKey: 'apiKey' } } });
    const { refused, asked, read } = await edit(ENTRIES.with(3, hidden));
    expect(refused).toEqual([expect.stringContaining('no readable Secret of this name')]);
    expect([asked[0], new Set(asked).size]).toEqual([undefined, 515]);
    expect([new Set(read).size, read.includes('not-yours')]).toEqual([513, false]);
  });
});
