// Conditions of an instance: whether it can serve; and its published snapshots.
import { beforeEach, describe, expect, test } from 'vitest';
import { Snapshot } from '#core/models/snapshot.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { INSTANCE_LABEL } from '#crds/names/group.ts';
import { memory } from '../../../test/gateway/memory.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, PASSWORD } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets());
});

const main = () => harness.status(gatewayInstances, 'main');
const ready = () => harness.ready(gatewayInstances, 'main');
const condition = async (type: string) => {
  const found = (await main()).conditions?.find((one) => one.type === type);
  return found === undefined ? 'nothing' : `${found.status} ${found.reason}`;
};
const message = async (type: string) => (await main()).conditions?.find((one) => one.type === type)?.message;
const snapshots = async () => harness.cluster.objects(RESOURCES.configMaps);

describe('an instance', () => {
  test('is ready after one run, with its url, models, keys and snapshot', async () => {
    await harness.apply(makeInstance(), makeKey(), makeKey({ blocked: true }, 'off'));
    await harness.resync();
    expect(await main()).toMatchObject({
      url: 'http://gateway.test/default/main',
      workloadType: 'Local',
      keys: { total: 2, active: 1 },
      models: [
        { modelName: 'small', identifier: 'small', ready: true },
        { modelName: 'free', identifier: 'free', ready: true },
      ],
      observedGeneration: 1,
    });
    for (const type of ['Ready', 'DatabaseReady', 'StoreReady', 'WorkloadReady', 'ModelsReady']) {
      expect(await condition(type)).toBe('True Ready');
    }
    const [published] = await snapshots();
    expect(published).toMatchObject({
      metadata: {
        name: `main-${(await main()).snapshotHash}`,
        ownerReferences: [{ kind: 'GatewayInstance', name: 'main' }],
      },
      immutable: true,
    });
    const text = (published?.data as Record<string, string> | undefined)?.['snapshot.json'] ?? '';
    expect(Snapshot.parse(JSON.parse(text)).models.map(({ identifier }) => identifier)).toEqual(['small', 'free']);
    expect(text).not.toContain('sk-upstream');
    expect(harness.events('main')).toEqual(['Ready']);
  });

  test.each([
    ['a missing database Secret', 'db', undefined, 'DatabaseReady', 'SecretNotFound', '"db"'],
    [
      'a missing key of the database Secret',
      'db',
      { host: 'db', username: 'u', password: '' },
      'DatabaseReady',
      'SecretKeyMissing',
      '"dbname"',
    ],
    ['a missing store Secret', 'store', undefined, 'StoreReady', 'SecretNotFound', '"store"'],
    [
      'a missing key of the Secret of redisSecretRef',
      'store',
      { port: '1', password: '' },
      'StoreReady',
      'SecretKeyMissing',
      '"host"',
    ],
    [
      'an invalid port',
      'store',
      { host: 'redis', port: 'x', password: '' },
      'StoreReady',
      'SecretKeyInvalid',
      '"port"',
    ],
  ])('with %s is not ready, and names it', async (_, name, data, type, reason, named) => {
    await harness.remove(RESOURCES.secrets, name);
    if (data !== undefined) await harness.apply(makeSecret(name, data));
    await harness.apply(makeInstance());
    await harness.resync();
    expect(await condition(type)).toBe(`False ${reason}`);
    expect(await message(type)).toContain(named);
    expect(await ready()).toBe(`False ${reason}`);
    await harness.apply(...makeSecrets());
    await harness.resync();
    expect(await ready()).toBe('True Ready');
  });

  test('whose database or store cannot be reached is not ready; the message has the address, never a password', async () => {
    await harness.apply(makeInstance());
    harness.refuse(true);
    await harness.resync();
    expect(await ready()).toBe('False DatabaseUnreachable');
    harness.refuse(false);
    harness.store = { ok: false, reason: 'StoreEvicts', message: 'maxmemory-policy is allkeys-lru' };
    await harness.resync();
    expect(await ready()).toBe('False StoreEvicts');
    expect(JSON.stringify(await main())).not.toContain(PASSWORD);
  });

  test('whose Secrets cannot be read is not ready, and names one; when they can be, it is', async () => {
    await harness.apply(makeInstance());
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'get' && resource === RESOURCES.secrets) throw new Error('refused');
    });
    await harness.resync();
    expect(await ready()).toBe('False SecretUnreadable');
    expect(await message('DatabaseReady')).toBe('Secret "db" could not be read: refused');
    harness.cluster.inject(() => undefined);
    await harness.resync();
    expect(await ready()).toBe('True Ready');
  });

  test('whose database answers but cannot be migrated is not ready', async () => {
    await harness.apply(makeInstance());
    harness.onDatabase = (method) => {
      if (method === 'migrate') throw new Error('permission denied to create schema');
    };
    const report = await harness.resync();
    expect(report.failed).toEqual({ OpenInstance: 1 });
    expect(await ready()).toBe('False DatabaseNotMigrated');
    expect(await message('Ready')).toContain('permission denied');
  });

  test('with one entry of an unknown provider and without an address stays ready and names the entry', async () => {
    const [first, second] = (makeInstance().spec as { models: [object, object] }).models;
    const misspelt = {
      modelName: 'mini',
      identifier: 'mini',
      requiresAuth: false,
      gatewayParams: { model: 'opnai/gpt-5-mini', inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '1' },
    };
    await harness.apply(makeInstance({ models: [first, second, misspelt] }));
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await condition('ModelsReady')).toBe('False ProviderUnknown');
    expect(await message('ModelsReady')).toBe(
      'spec.models[2].gatewayParams.model: "opnai/gpt-5-mini": provider "opnai" is unknown, and the model entry has no apiBase; did you mean "openai"? If it is your own server, set apiBase',
    );
    expect((await main()).models).toMatchObject([{}, {}, { ready: false, reason: 'ProviderUnknown' }]);
    await harness.edit(gatewayInstances, 'main', { spec: { models: [misspelt] } });
    await harness.resync();
    expect(await ready()).toBe('False ProviderUnknown');
  });

  test('with one entry of a provider that has no address of its own stays ready and names the entry', async () => {
    const [first] = (makeInstance().spec as { models: [object] }).models;
    const prices = { inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '1' };
    const addressless = {
      modelName: 'mini',
      identifier: 'mini',
      requiresAuth: false,
      gatewayParams: { model: 'azure/gpt-5-mini', ...prices },
    };
    await harness.apply(makeInstance({ models: [first, addressless] }));
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await condition('ModelsReady')).toBe('False AddressMissing');
    expect(await message('ModelsReady')).toContain('spec.models[1].gatewayParams.model');
    expect((await main()).models).toMatchObject([{ ready: true }, { ready: false, reason: 'AddressMissing' }]);
  });

  test('with one entry without a price names the entry, which no key can use, and serves the others', async () => {
    const [first] = (makeInstance().spec as { models: [object] }).models;
    const unpriced = {
      modelName: 'free',
      identifier: 'free',
      requiresAuth: false,
      gatewayParams: { model: 'ollama/free' },
    };
    await harness.apply(makeInstance({ models: [first, unpriced] }));
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await condition('ModelsReady')).toBe('False ModelNotPriced');
    expect(await message('ModelsReady')).toBe(
      'spec.models[1].gatewayParams: no key can use "free" without a price, and no price is listed for "ollama/free"; set inputCostPerMillionTokens and outputCostPerMillionTokens ("0" is free)',
    );
    expect((await main()).models).toMatchObject([{ ready: true }, { ready: false, reason: 'ModelNotPriced' }]);
    await harness.edit(gatewayInstances, 'main', { spec: { models: [unpriced] } });
    await harness.resync();
    expect(await ready()).toBe('False ModelNotPriced');
  });

  test('with one entry without credentials stays ready and names the entry; if no entry has them, it is not ready', async () => {
    await harness.apply(makeInstance());
    await harness.resync();
    const before = (await main()).snapshotHash;
    await harness.edit(RESOURCES.secrets, 'openai', { data: { apiBase: null } });
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await condition('ModelsReady')).toBe('False SecretKeyMissing');
    expect(await message('ModelsReady')).toMatch(
      /"apiBase": Secret "openai" has no key of this name, for model entry "small"; add/,
    );
    expect((await main()).models).toMatchObject([
      { identifier: 'small', ready: false, reason: 'SecretKeyMissing' },
      { ready: true },
    ]);
    expect((await main()).snapshotHash).toBe(before);
    await harness.edit(gatewayInstances, 'main', {
      spec: { models: [(makeInstance().spec as { models: object[] }).models[0]] },
    });
    await harness.resync();
    expect(await ready()).toBe('False SecretKeyMissing');
  });

  test.each([
    ['apiKey', '', '"apiKey": this key of Secret "openai" is empty, for model entry "small"; the gateway skips'],
    ['apiBase', btoa('hush'), '"apiBase": this key of Secret "openai" must be an http address, without'],
  ])('whose gateway skips an entry, because %s of its Secret is %j, names the entry', async (key, value, why) => {
    await harness.apply(makeInstance());
    await harness.edit(RESOURCES.secrets, 'openai', { data: { [key]: value } });
    await harness.resync();
    expect(await ready()).toBe('True Ready');
    expect(await condition('ModelsReady')).toBe('False SecretKeyInvalid');
    expect(await message('ModelsReady')).toContain(`spec.models[0].modelCredentials.keys.${key}: ${why}`);
    expect(await message('ModelsReady')).not.toContain('hush');
  });

  test('without any credentials names as many entries as fit in the message, and its keys show the beginning', async () => {
    const keys = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`c${n}`, `m${n}`.padEnd(40, 'm')]));
    const models = Array.from({ length: 64 }, (_, n) => ({
      modelName: 'm',
      identifier: `${n}`.padEnd(255, '€'),
      requiresAuth: true,
      modelCredentials: { nameRef: 'openai', keys },
      gatewayParams: { model: 'openai/m' },
    }));
    await harness.apply(makeInstance({ models }), makeKey());
    await harness.resync();
    const words = await message('ModelsReady');
    expect(words).toHaveLength(2048);
    expect(words).toContain('spec.models[0].modelCredentials.keys.c0: Not found');
    const [ofKey] = (await harness.status(virtualKeys, 'chat')).conditions ?? [];
    expect(ofKey).toMatchObject({ type: 'Ready', reason: 'InstanceNotReady' });
    expect(ofKey?.message).toHaveLength(1024);
    expect(ofKey?.message).toMatch(/^GatewayInstance default\/main is not ready: SecretKeyMissing: .*…$/s);
  });

  test('with thousands of missing Secret keys keeps only what its status shows while its database is read', async () => {
    const keys = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`c${n}`, `m${n}`]));
    const models = Array.from({ length: 512 }, (_, n) => ({
      modelName: 'm',
      identifier: `${n}`,
      requiresAuth: true,
      modelCredentials: { nameRef: 'openai', keys },
      gatewayParams: { model: 'openai/m' },
    }));
    await harness.apply(makeInstance({ models }));
    let [before, kept] = [0, 0];
    harness.onDatabase = async () => {
      kept ||= (await memory()) - before;
    };
    before = await memory();
    await harness.resync();
    expect(kept).toBeLessThan(5_000_000);
  });

  test('without models is valid, but not ready', async () => {
    await harness.apply(makeInstance({ models: [] }));
    await harness.resync();
    expect(await ready()).toBe('False NoModels');
  });

  test('of type External has the url of its spec', async () => {
    await harness.apply(makeInstance({ workload: { type: 'External', url: 'https://llm.example.com' } }));
    await harness.resync();
    expect(await main()).toMatchObject({ url: 'https://llm.example.com', workloadType: 'External' });
    expect(await ready()).toBe('True Ready');
  });

  test('publishes each change, keeps the last two snapshots and removes older ones', async () => {
    await harness.apply(makeInstance());
    for (let retries = 1; retries <= 5; retries += 1) {
      harness.clock.pass(1000);
      await harness.edit(gatewayInstances, 'main', { spec: { routing: { retries } } });
      await harness.resync();
      expect((await snapshots()).map(({ metadata }) => metadata.name)).toContain(`main-${(await main()).snapshotHash}`);
      expect((await harness.resync()).actions).toEqual({});
    }
    expect((await snapshots()).length).toBeLessThanOrEqual(3);
  });

  test('has its snapshot restored when a person deletes it', async () => {
    await harness.apply(makeInstance());
    await harness.resync();
    const name = `main-${(await main()).snapshotHash}`;
    await harness.remove(RESOURCES.configMaps, name);
    await harness.resync();
    expect(await harness.get(RESOURCES.configMaps, name)).toBeDefined();
  });

  test('whose snapshot an earlier version wrote without the label of its instance has it written again in one run', async () => {
    await harness.apply(makeInstance());
    await harness.resync();
    const [{ metadata } = { metadata: { name: '', uid: '' } }] = await snapshots();
    await harness.edit(RESOURCES.configMaps, metadata.name, { metadata: { labels: { [INSTANCE_LABEL]: null } } });
    expect(await harness.resync()).toMatchObject({ failed: {} });
    const [after] = await snapshots();
    expect(after?.metadata.name).toBe(metadata.name);
    expect(after?.metadata.uid).not.toBe(metadata.uid);
    expect((await harness.resync()).actions).toEqual({});
  });

  test('whose snapshot has the name of an object of others reports that, and does not change it', async () => {
    await harness.apply(makeInstance());
    await harness.resync();
    const [{ metadata } = { metadata: { name: '', uid: '' } }] = await snapshots();
    await harness.remove(RESOURCES.configMaps, metadata.name);
    await harness.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: metadata.name, namespace: 'default' },
    });
    expect((await harness.resync()).failed).toEqual({ PublishSnapshot: 1 });
    expect((await snapshots())[0]?.metadata.ownerReferences).toBeUndefined();
  });

  test('with more models than fit in a ConfigMap keeps the previous snapshot and reports that', async () => {
    await harness.apply(makeInstance());
    await harness.resync();
    const { snapshotHash } = await main();
    const models = Array.from({ length: 512 }, (_, index) => ({
      modelName: `m${index}`,
      identifier: `m${index}`,
      requiresAuth: false,
      gatewayParams: {
        model: `ollama/${'m'.repeat(200)}`,
        apiBase: `http://${'h'.repeat(2000)}`,
        inputCostPerMillionTokens: '0',
        outputCostPerMillionTokens: '0',
      },
    }));
    await harness.edit(gatewayInstances, 'main', { spec: { models } });
    await harness.resync();
    expect(await condition('ModelsReady')).toBe('False SnapshotTooLarge');
    expect(await ready()).toBe('True Ready');
    expect((await main()).snapshotHash).toBe(snapshotHash);
    expect((await snapshots()).length).toBe(1);
  });
});

describe('one bad instance', () => {
  test('never stops the others: each key is in its own database, with its own names', async () => {
    await harness.apply(
      makeSecret('db2', { host: 'db', username: 'u', password: '', dbname: 'second' }),
      makeInstance(),
      makeInstance(
        {
          databaseSecretRef: {
            nameRef: 'db2',
            keys: {
              hostSecret: 'host',
              usernameSecret: 'username',
              passwordSecret: 'password',
              dbnameSecret: 'dbname',
            },
          },
        },
        'second',
      ),
      makeKey(),
      makeKey({ connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } }, 'other'),
    );
    harness.refuse(true);
    await harness.resync();
    expect(await harness.ready(gatewayInstances, 'second')).toBe('True Ready');
    expect(await harness.ready(virtualKeys, 'other')).toBe('True Ready');
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotReady');
    harness.refuse(false);
    await harness.resync();
    const claims = async (dbname: string, instance: string) =>
      (await harness.database(dbname).claims((await harness.get(gatewayInstances, instance))?.metadata.uid ?? '')).map(
        ({ alias }) => alias,
      );
    expect(await claims('gateway', 'main')).toEqual(['chat']);
    expect(await claims('second', 'second')).toEqual(['other']);
    expect((await snapshots()).map(({ metadata }) => metadata.name.replace(/-[0-9a-f]+$/, ''))).toEqual([
      'main',
      'second',
    ]);
  });

  test('that the API server cannot read leaves its keys as they are', async () => {
    await harness.apply(makeInstance(), makeInstance({}, 'second'), makeKey());
    await harness.resync();
    const before = harness.writes();
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'list' && resource.plural === 'configmaps') throw new Error('etcd is slow');
      return undefined;
    });
    const report = await harness.resync();
    expect(report.failed).toEqual({ Observe: 2 });
    expect(harness.writes()).toBe(before);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });
});

describe('a host without a dot', () => {
  const where = async () => {
    await harness.apply(makeInstance({}, 'far', 'apps'), ...makeSecrets().map((secret) => inApps(secret)));
    await harness.apply(inApps(makeSecret('store', { host: 'redis', port: '6379', password: '' })));
    await harness.resync();
    const { conditions } = await harness.status(gatewayInstances, 'far', 'apps');
    const messageOf = (type: string) => conditions?.find((one) => one.type === type)?.message;
    return [messageOf('DatabaseReady'), messageOf('StoreReady')];
  };
  const inApps = (secret: KubeObject) => ({ ...secret, metadata: { ...secret.metadata, namespace: 'apps' } });

  test("is a Service of the instance's namespace in the cluster, as it is for the gateway's Pods", async () => {
    harness.inCluster = true;
    expect(await where()).toEqual([
      'PostgreSQL at db.apps.svc:5432, database "gateway"',
      'Redis at redis.apps.svc:6379',
    ]);
  });

  test('is a name of this machine outside the cluster', async () => {
    expect(await where()).toEqual(['PostgreSQL at db:5432, database "gateway"', 'Redis at redis:6379']);
  });
});

describe('an instance in deletion without our finalizer, which a finalizer of another program keeps', () => {
  const finalizers = (...all: string[]) => harness.edit(gatewayInstances, 'main', { metadata: { finalizers: all } });
  const working = async () => {
    await harness.apply(makeInstance(), makeKey());
    await harness.resync();
    return (await harness.value('chat-key')) ?? '';
  };

  test('is closed once, as if it were gone: its keys end, and it is there until that program releases it', async () => {
    const value = await working();
    await finalizers('example.com/x');
    await harness.remove(gatewayInstances, 'main');
    expect((await harness.resync()).actions).toMatchObject({ CloseInstance: 1 });
    expect(await harness.works(value)).toBe(false);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
    expect((await harness.resync()).actions).toEqual({});
    await finalizers();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
  });

  test('is closed when its database answers again', async () => {
    const value = await working();
    await finalizers('example.com/x');
    harness.refuse(true);
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await harness.works(value)).toBe(true);
    harness.refuse(false);
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
  });
});
