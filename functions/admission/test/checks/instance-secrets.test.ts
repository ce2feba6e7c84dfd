// Secrets that an instance needs, their content, and messages for a user who may not read them.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import { createWorld, GOOD, modelEntry, objectOf, secretOf, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews } from '../../../../test/admission/reviews.ts';
import { INHERITED_NAMES } from '../../../../test/support/inherited-names.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => review('GatewayInstance', change, metadata, more);

  test('whose database or store Secret is missing is refused', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'database');
    await world.drop(RESOURCES.secrets, 'platform', 'store');
    expect((await instance({})).refused).toEqual([
      'GatewayInstance "main" is invalid:',
      '- spec.databaseSecretRef.nameRef: Not found: "database": no readable Secret of this name is in namespace "platform"; create it there, or correct the name',
      '- spec.redisSecretRef.nameRef: Not found: "store": no readable Secret of this name is in namespace "platform"; create it there, or correct the name',
    ]);
  });

  test('whose Secret has very many keys is refused: the Secret is not read', async () => {
    const data = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`k${n}`, '']));
    await world.put(RESOURCES.secrets, secretOf('wide', data));
    const { keys } = GOOD.GatewayInstance.databaseSecretRef;
    expect((await instance({ databaseSecretRef: { nameRef: 'wide', keys } })).refused).toEqual([
      'spec.databaseSecretRef.nameRef: "wide": the Secret has more than 1000 keys, so it is not read; keep only the keys that are needed, or name another Secret',
    ]);
  });

  test('that maps a key that the Secret lacks is refused, with the keys that the Secret has', async () => {
    const keys = { ...GOOD.GatewayInstance.databaseSecretRef.keys, dbnameSecret: 'dbname' };
    expect((await instance({ databaseSecretRef: { nameRef: 'database', keys } })).refused).toEqual([
      'spec.databaseSecretRef.keys.dbnameSecret: Not found: "dbname": Secret "database" has no key of this name; add it to the Secret, or correct the name (it has host, name, password, user)',
    ]);
    const store = { nameRef: 'store', keys: { hostSecret: 'host', portSecret: 'p', passwordSecret: 'q' } };
    expect((await instance({ redisSecretRef: store })).refused).toHaveLength(3);
  });

  test('that maps thousands of keys that its Secret lacks gets findings for some of them', async () => {
    await world.put(RESOURCES.secrets, secretOf('empty', {}));
    const keys = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`c${n}`, 'k']));
    const models = Array.from({ length: 512 }, (_, n) =>
      modelEntry(`${n}`, { modelCredentials: { nameRef: 'empty', keys } }),
    );
    const { refused, warnings } = await instance(
      { models },
      { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } },
    );
    expect([refused.length, refused.at(-1)]).toEqual([22, '- and 2028 more']);
    expect(warnings.at(-1)).toBe('and 2028 more');
  });

  test('whose store is in memory needs no port and no password', async () => {
    await world.put(RESOURCES.secrets, secretOf('here', { host: 'memory' }));
    const keys = GOOD.GatewayInstance.redisSecretRef.keys;
    expect(await instance({ redisSecretRef: { nameRef: 'here', keys } })).toEqual({ refused: [], warnings: [] });
  });

  test('needs no port if every host has one, and the message about another missing key does not ask for it', async () => {
    await world.put(RESOURCES.secrets, secretOf('hosts', { host: 'a:26379,b:26379', password: '' }));
    await world.put(RESOURCES.secrets, secretOf('without-password', { host: 'a:26379,b:26379' }));
    const keys = GOOD.GatewayInstance.redisSecretRef.keys;
    expect(await instance({ redisSecretRef: { nameRef: 'hosts', keys } })).toEqual({ refused: [], warnings: [] });
    expect((await instance({ redisSecretRef: { nameRef: 'without-password', keys } })).refused).toEqual([
      expect.stringContaining('spec.redisSecretRef.keys.passwordSecret: Not found'),
    ]);
  });

  test('whose Secrets have an impossible address gets a warning', async () => {
    await world.put(
      RESOURCES.secrets,
      secretOf('odd', { host: 'postgres://x', user: 'u', password: '', name: 'n', port: 'x' }),
    );
    const { databaseSecretRef, redisSecretRef } = GOOD.GatewayInstance;
    const { refused, warnings } = await instance({
      databaseSecretRef: { ...databaseSecretRef, nameRef: 'odd' },
      redisSecretRef: { ...redisSecretRef, nameRef: 'odd' },
    });
    expect(refused).toEqual([]);
    expect(warnings).toEqual([
      expect.stringContaining(
        'spec.databaseSecretRef.keys.hostSecret: "host": the value of this key of Secret "odd" is not a host; write',
      ),
      expect.stringContaining(
        'spec.redisSecretRef.keys.hostSecret: "host": the value of this key of Secret "odd" is not a host; write',
      ),
    ]);
  });

  test.each(INHERITED_NAMES)(
    'that maps a key %s, which no Secret has, is refused, and the message names the key',
    async (name) => {
      const { databaseSecretRef, redisSecretRef } = GOOD.GatewayInstance;
      const { refused } = await instance({
        databaseSecretRef: { ...databaseSecretRef, keys: { ...databaseSecretRef.keys, hostSecret: name } },
        redisSecretRef: { ...redisSecretRef, keys: { ...redisSecretRef.keys, hostSecret: name } },
      });
      for (const ref of ['databaseSecretRef', 'redisSecretRef'])
        expect(refused.join('\n')).toContain(`spec.${ref}.keys.hostSecret: Not found: ${JSON.stringify(name)}`);
    },
  );

  test('with a missing credential Secret, or a missing key in it, is refused', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'creds-claude');
    const credentials = { nameRef: 'creds-gpt-4o', keys: { apiKey: 'token' } };
    const models = [modelEntry('gpt-4o', { modelCredentials: credentials }), modelEntry('claude')];
    expect((await instance({ models })).refused).toEqual([
      'GatewayInstance "main" is invalid:',
      expect.stringContaining(
        '- spec.models[0].modelCredentials.keys.apiKey: Not found: "token": Secret "creds-gpt-4o" has no key of this name, for model entry "gpt-4o"; add it to the Secret, or correct the name (it has apiKey)',
      ),
      expect.stringContaining(
        '- spec.models[1].modelCredentials.nameRef: Not found: "creds-claude": no readable Secret of this name is in namespace "platform", for model entry "claude"; ',
      ),
    ]);
  });

  test.each([
    ['apiKey', 'is empty', { apiKey: ' \n' }, {}],
    ['apiBase', 'must be an http address', { apiKey: 'hush', apiBase: 'hush.example/v1' }, {}],
    ['apiBase', 'must be an http address', { apiKey: 'hush', apiBase: 'https://me:hush@host' }, {}],
    ['awsRegion', 'cannot be part', { awsRegion: 'hush.example/' }, { model: 'bedrock/m' }],
    ['awsRegion', 'is missing', { awsAccessKeyId: 'hush', awsSecretAccessKey: 'hush' }, { model: 'bedrock/m' }],
    ['vertexCredentials', 'must be the JSON key', { vertexCredentials: 'hush' }, { model: 'vertex_ai/m' }],
  ])('whose %s in a Secret %s, so that the gateway skips the entry, is refused', async (name, why, values, params) => {
    await world.put(RESOURCES.secrets, secretOf('odd', values));
    const keys = Object.fromEntries(Object.keys(values).map((key) => [key, key]));
    const prices = { inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '1' };
    const entry = {
      modelCredentials: { nameRef: 'odd', keys },
      gatewayParams: { model: 'openai/m', apiBase: 'https://host/v1', ...prices, ...params },
    };
    const models = [modelEntry('gpt-4o', entry)];
    const { refused } = await instance({ models });
    expect(refused).toEqual([expect.stringContaining(`spec.models[0].modelCredentials.keys.${name}: `)]);
    expect(refused.join()).toContain(why);
    expect(refused.join()).not.toContain('hush');
    // The same file may correct the Secret.
    expect((await instance({ models }, {}, { dryRun: true })).refused).toEqual([]);
  });

  test('whose model entries share one Secret is refused, unless the annotation allows it', async () => {
    const models = [
      modelEntry('gpt-4o'),
      modelEntry('mini', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'apiKey' } } }),
    ];
    expect((await instance({ models })).refused).toEqual([
      `spec.models[1].modelCredentials.nameRef: Duplicate value: "creds-gpt-4o": model entry "gpt-4o" already uses this Secret; give each its own Secret, or allow sharing with the annotation ${SHARED_CREDENTIALS_ANNOTATION}: "allowed"`,
    ]);
    expect(
      (await instance({ models }, { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'true' } })).refused,
    ).toHaveLength(1);
    expect(await instance({ models }, { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } })).toEqual({
      refused: [],
      warnings: [],
    });
  });

  test('gets a finding about the entry that began to share a Secret, whatever its position and its name are', async () => {
    const own = (name: string) => modelEntry(name);
    const taking = (name: string, from: string) =>
      modelEntry(name, { modelCredentials: { nameRef: `creds-${from}`, keys: { apiKey: 'apiKey' } } });
    const refusedAt = async (models: readonly object[], before?: readonly object[]) => {
      const oldObject = objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models: before });
      const { refused } = await instance({ models }, {}, before === undefined ? {} : { oldObject });
      return refused.map((line) =>
        line.replace(/^(?:- )?(spec\S+)\.modelCredentials.* entry ("\S+") already uses .*$/, '$1 $2'),
      );
    };
    const [gpt, claude] = [own('gpt-4o'), own('claude')];
    expect(await refusedAt([gpt, taking('a', 'gpt-4o')])).toEqual(['spec.models[1] "gpt-4o"']);
    expect(await refusedAt([gpt, taking('claude', 'gpt-4o')], [gpt, claude])).toEqual(['spec.models[1] "gpt-4o"']);
    expect(await refusedAt([taking('gpt-4o', 'claude'), claude], [gpt, claude])).toEqual(['spec.models[0] "claude"']);
    // An old violation, after reordering, with one entry less, and with one more.
    const stored = [gpt, taking('b', 'gpt-4o'), taking('c', 'gpt-4o')];
    expect(await refusedAt(stored.toReversed(), stored)).toEqual([]);
    expect(await refusedAt(stored.slice(1).toReversed(), stored)).toEqual([]);
    expect(await refusedAt([taking('a', 'gpt-4o'), ...stored], stored)).toEqual(['spec.models[0] "gpt-4o"']);
  });
});

describe('a Secret that the requesting user may not read', () => {
  test('causes exactly the answer for a missing one, and is never read', async () => {
    await world.put(RESOURCES.secrets, secretOf('not-yours', { host: 'x' }));
    world.cluster.calls.length = 0;
    const at = (nameRef: string) =>
      review('GatewayInstance', { databaseSecretRef: { ...GOOD.GatewayInstance.databaseSecretRef, nameRef } });
    const [hidden, missing] = [await at('not-yours'), await at('nowhere')];
    expect(hidden.refused.join().replaceAll('not-yours', 'nowhere')).toBe(missing.refused.join());
    expect(world.cluster.calls.filter(({ verb, name }) => verb === 'get' && name === 'not-yours')).toEqual([]);
  });

  test('causes no finding if a key would write to it: the reconciler reports that later', async () => {
    await world.put(RESOURCES.secrets, secretOf('not-yours', {}, 'team-a'));
    expect((await review('VirtualKey', { secretTemplate: { name: 'not-yours' } })).refused).toEqual([]);
  });

  test('causes one access review for each request, however often it is named', async () => {
    const models = ['a', 'b', 'c'].map((name) =>
      modelEntry(name, { modelCredentials: { nameRef: 'creds-claude', keys: { apiKey: 'apiKey' } } }),
    );
    world.cluster.calls.length = 0;
    await review('GatewayInstance', { models }, { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } });
    expect(world.cluster.calls.filter(({ verb, name }) => verb === 'may' && name === 'creds-claude')).toHaveLength(1);
    expect(world.cluster.calls.filter(({ verb, name }) => verb === 'get' && name === 'creds-claude')).toHaveLength(1);
  });
});
