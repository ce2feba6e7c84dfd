// Does each rule refuse what it should, in words that say where and what to do, and nothing else?
import { beforeEach, describe, expect, test } from 'vitest';
import { OWN_VARIABLES } from '#core/own-variables.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { notYetActedOn } from '#crds/acted-on.ts';
import { APPLIED_ANNOTATION, OWNED, OWNED_LABEL, SHARED_CREDENTIALS_ANNOTATION } from '#crds/group.ts';
import { gatewayInstances, type KindName, teams, users, virtualKeys } from '#crds/kinds.ts';
import {
  ask,
  createWorld,
  depsOf,
  GOOD,
  modelEntry,
  objectOf,
  requestOf,
  secretOf,
  type World,
} from '../../test/admission/fixtures.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});

const validate = (object: KubeObject, more = {}) => ask(depsOf(world.cluster), '/validate', requestOf(object, more));
const told = async (kind: KindName, change: object, metadata = {}, more = {}) => {
  const { status, warnings = [] } = await validate(objectOf(kind, { ...GOOD[kind], ...change }, metadata), more);
  return { refused: status?.message.split('\n') ?? [], warnings };
};
const spare = (name: string, spec: object, namespace = 'team-a', kind: KindName = 'VirtualKey') =>
  objectOf(kind, { ...GOOD[kind], ...spec }, { name, namespace });

test('an annotation of ours on a kind where it does nothing is let in with a warning that says where it belongs', async () => {
  const warned = async (kind: KindName, name: string) => {
    const { refused, warnings } = await told(kind, {}, { annotations: { [name]: '1' } });
    expect(refused).toEqual([]);
    return warnings;
  };
  const on = (name: string, kind: KindName, place: string) => [
    `metadata.annotations["${name}"]: does nothing on a ${kind}; remove it here, and write it on ${place}`,
  ];
  const rotate = 'auth.gateway-operator.dev/rotate';
  const imported = 'auth.gateway-operator.dev/import';
  expect(await warned('VirtualKey', rotate)).toEqual([]);
  expect(await warned('VirtualKey', imported)).toEqual(on(imported, 'VirtualKey', 'a Secret'));
  expect(await warned('User', rotate)).toEqual(on(rotate, 'User', 'a VirtualKey'));
  expect(await warned('Team', rotate)).toEqual(on(rotate, 'Team', 'a VirtualKey'));
});

test('a key whose Calendar windows begin at an odd hour or day is let in with a warning that says from where they are counted', async () => {
  const warned = async (change: object) => (await told('VirtualKey', change)).warnings;
  expect(await warned({ budgetWindow: 'Calendar', budgetDuration: '1mo' })).toEqual([]);
  expect(await warned({ budgetWindow: 'Rolling', budgetDuration: '36h' })).toEqual([]);
  expect(await warned({ budgetWindow: 'Calendar', budgetDuration: '7d' })).toEqual([
    'spec.budgetDuration: "7d": budgetWindow Calendar counts windows of this length in a row from 1970-01-01T00:00Z on, whatever day, week or month that meets; write "1w" for windows that begin each Monday',
  ]);
  const modelMaxBudget = { 'gpt-4o': { maxBudget: '1', budgetDuration: '2w' } };
  expect(await warned({ budgetWindow: 'Calendar', budgetDuration: '1d', modelMaxBudget })).toEqual([
    'spec.modelMaxBudget["gpt-4o"].budgetDuration: "2w": budgetWindow Calendar counts windows of this length in blocks of 2 weeks from Monday 1970-01-05 on; write "1w" for windows that begin each Monday',
  ]);
});

test('everything of the good world is let in without a word', async () => {
  for (const kind of ['GatewayInstance', 'VirtualKey', 'User', 'Team'] as const) {
    expect(await validate(objectOf(kind))).toEqual({ uid: expect.any(String), allowed: true });
  }
});

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => told('GatewayInstance', change, metadata, more);

  test('whose database or store Secret is missing is refused', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'database');
    await world.drop(RESOURCES.secrets, 'platform', 'store');
    expect((await instance({})).refused).toEqual([
      'GatewayInstance "main" has 2 mistakes:',
      '- spec.databaseSecretRef.nameRef: "database": there is no Secret of this name in namespace "platform" that can be read; create it there, or correct the name',
      '- spec.redisSecretRef.nameRef: "store": there is no Secret of this name in namespace "platform" that can be read; create it there, or correct the name',
    ]);
  });

  test('that maps an entry which the Secret lacks is refused, with the entries that are there', async () => {
    const keys = { ...GOOD.GatewayInstance.databaseSecretRef.keys, dbnameSecret: 'dbname' };
    expect((await instance({ databaseSecretRef: { nameRef: 'database', keys } })).refused).toEqual([
      'spec.databaseSecretRef.keys.dbnameSecret: "dbname": Secret "database" has no such entry; add it to the Secret, or correct the name (it has host, name, password, user)',
    ]);
    const store = { nameRef: 'store', keys: { hostSecret: 'host', portSecret: 'p', passwordSecret: 'q' } };
    expect((await instance({ redisSecretRef: store })).refused).toHaveLength(3);
  });

  test('whose store is in memory needs no port and no password', async () => {
    await world.put(RESOURCES.secrets, secretOf('here', { host: 'memory' }));
    const keys = GOOD.GatewayInstance.redisSecretRef.keys;
    expect(await instance({ redisSecretRef: { nameRef: 'here', keys } })).toEqual({ refused: [], warnings: [] });
  });

  test('whose Secrets hold what cannot be an address is warned about', async () => {
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
        'spec.databaseSecretRef.keys.hostSecret: "host": this entry of Secret "odd" is not a host; write',
      ),
      expect.stringContaining(
        'spec.redisSecretRef.keys.hostSecret: "host": this entry of Secret "odd" is not a host; write',
      ),
    ]);
  });

  test('with a credential Secret or entry that is missing is refused', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'creds-claude');
    const credentials = { nameRef: 'creds-gpt-4o', keys: { apiKey: 'token' } };
    const models = [modelEntry('gpt-4o', { modelCredentials: credentials }), modelEntry('claude')];
    expect((await instance({ models })).refused).toEqual([
      'GatewayInstance "main" has 2 mistakes:',
      expect.stringContaining(
        '- spec.models[0].modelCredentials.keys.apiKey: "token": Secret "creds-gpt-4o" has no such entry, for model "gpt-4o"; add it to the Secret, or correct the name (it has apiKey)',
      ),
      expect.stringContaining(
        '- spec.models[1].modelCredentials.nameRef: "creds-claude": there is no Secret of this name in namespace "platform" that can be read, for model "claude"; ',
      ),
    ]);
  });

  test('whose entries share one Secret is refused, unless the annotation allows it', async () => {
    const models = [
      modelEntry('gpt-4o'),
      modelEntry('mini', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'apiKey' } } }),
    ];
    expect((await instance({ models })).refused).toEqual([
      `spec.models[1].modelCredentials.nameRef: "creds-gpt-4o": is the Secret of entry "gpt-4o" already; give each entry a Secret of its own, or allow sharing with the annotation ${SHARED_CREDENTIALS_ANNOTATION}: "allowed"`,
    ]);
    expect(
      (await instance({ models }, { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'true' } })).refused,
    ).toHaveLength(1);
    expect(await instance({ models }, { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } })).toEqual({
      refused: [],
      warnings: [],
    });
  });

  test('is told of the entry that took the Secret of another, wherever the two stand and whatever they are called', async () => {
    const own = (name: string) => modelEntry(name);
    const taking = (name: string, from: string) =>
      modelEntry(name, { modelCredentials: { nameRef: `creds-${from}`, keys: { apiKey: 'apiKey' } } });
    const refusedAt = async (models: readonly object[], before?: readonly object[]) => {
      const oldObject = objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models: before });
      const { refused } = await instance({ models }, {}, before === undefined ? {} : { oldObject });
      return refused.map((line) => line.replace(/^(?:- )?(spec\S+)\.modelCredentials.* of entry ("\S+") .*$/, '$1 $2'));
    };
    const [gpt, claude] = [own('gpt-4o'), own('claude')];
    expect(await refusedAt([gpt, taking('a', 'gpt-4o')])).toEqual(['spec.models[1] "gpt-4o"']);
    expect(await refusedAt([gpt, taking('claude', 'gpt-4o')], [gpt, claude])).toEqual(['spec.models[1] "gpt-4o"']);
    expect(await refusedAt([taking('gpt-4o', 'claude'), claude], [gpt, claude])).toEqual(['spec.models[0] "claude"']);
    // An old mistake, reordered, with an entry less, with one more.
    const stored = [gpt, taking('b', 'gpt-4o'), taking('c', 'gpt-4o')];
    expect(await refusedAt(stored.toReversed(), stored)).toEqual([]);
    expect(await refusedAt(stored.slice(1).toReversed(), stored)).toEqual([]);
    expect(await refusedAt([taking('a', 'gpt-4o'), ...stored], stored)).toEqual(['spec.models[0] "gpt-4o"']);
  });

  test('whose annotations ask for what is not understood is refused', async () => {
    const asked = async (name: string, text: string) =>
      (await instance({}, { annotations: { [`instance.gateway-operator.dev/${name}`]: text } })).refused;
    for (const [name, text] of [
      ['adopt-ledger', '7d2c1c5e-5c5b-4b4e-8a53-0f1f5a7e7b11'],
      ['deletion-share', '50%'],
      ['release-deletions', '0123456789 abcdef0123'],
    ] as const)
      expect(await asked(name, text)).toEqual([]);
    expect(await asked('adopt-ledger', 'the old one')).toEqual([
      expect.stringContaining('is not the uid of an instance'),
    ]);
    expect(await asked('deletion-share', '101%')).toEqual([expect.stringContaining('is no share')]);
    expect(await asked('release-deletions', 'yes')).toEqual([expect.stringContaining('names no held plan')]);
  });

  test('with an annotation of ours that nothing reads is let in with a warning that names the one that was meant', async () => {
    const annotations = {
      'instance.gateway-operator.dev/adopt-leger': '7d2c1c5e',
      'gateway-operator.dev/shared-credentials': 'allowed',
      'instance.gateway-operator.dev/rotate': '1',
      'instance.gateway-operator.dev/colour': 'red',
      'instance.gateway-operator.dev.example.com/adopt-leger': 'foreign',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'adopt-leger': 'foreign',
      [APPLIED_ANNOTATION]: 'abc',
    };
    const nothing = 'nothing reads an annotation of this name; ';
    expect(await instance({}, { annotations })).toEqual({
      refused: [],
      warnings: [
        `metadata.annotations["instance.gateway-operator.dev/adopt-leger"]: ${nothing}did you mean "instance.gateway-operator.dev/adopt-ledger"?`,
        `metadata.annotations["gateway-operator.dev/shared-credentials"]: ${nothing}did you mean "instance.gateway-operator.dev/shared-credentials"?`,
        `metadata.annotations["instance.gateway-operator.dev/rotate"]: ${nothing}did you mean "auth.gateway-operator.dev/rotate", on a VirtualKey?`,
        expect.stringContaining(`colour"]: ${nothing}remove it, or choose among instance.gateway-operator.dev/shared-`),
        expect.stringMatching(/^instance.*adopt-ledger$/), // a warning goes on in a second line
      ],
    });
  });

  test('that is paused, or changed while it is, is told what waits meanwhile', async () => {
    const running = { oldObject: objectOf('GatewayInstance') };
    const paused = { oldObject: objectOf('GatewayInstance', { ...GOOD.GatewayInstance, paused: true }) };
    const warnings = [
      'spec.paused: true: nothing of a paused instance is acted on but deletion, and what runs goes on: blocks, budgets and other changes wait, no key is rotated, status shows no new spend; delete a VirtualKey to stop it meanwhile',
    ];
    const silent = { refused: [], warnings: [] };
    expect(await instance({ paused: true }, {}, running)).toEqual({ refused: [], warnings });
    expect(await instance({ paused: true, routing: { retries: 5 } }, {}, paused)).toEqual({ refused: [], warnings });
    expect(await instance({ paused: true }, { labels: { tier: 'gold' } }, paused)).toEqual(silent);
    expect(await instance({}, {}, paused)).toEqual(silent);
    expect(await instance({ paused: true })).toEqual(silent);
  });

  test('with mistakes of its own is refused with those first', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'store');
    const models = [modelEntry('gpt-4o'), modelEntry('claude', { identifier: 'gpt-4o', requiresAuth: false })];
    const { refused } = await instance({ models });
    expect(refused).toHaveLength(4);
    expect(refused[1]).toContain('spec.models[1]');
    expect(refused[2]).toContain('spec.models[1]');
    expect(refused[3]).toContain('spec.redisSecretRef.nameRef');
  });

  test('without entries, without a price, with unknown names is let in with warnings', async () => {
    expect((await instance({ models: [] })).warnings).toEqual([expect.stringContaining('spec.models: has no entries')]);
    await world.put(RESOURCES.secrets, secretOf('odd', { apiKey: 'x' }));
    const models = [
      modelEntry('mine', {
        modelCredentials: { nameRef: 'odd', keys: { apikey: 'apiKey' } },
        gatewayParams: { model: 'nobody/mine', inputCostPerMillionTokens: '1' },
      }),
    ];
    expect(await instance({ models })).toEqual({
      refused: [],
      warnings: [
        'spec.models[0].gatewayParams: a key with a budget cannot use "mine" without a price; set outputCostPerMillionTokens ("0" is free): half a price is none',
        'spec.models[0].gatewayParams.model: "nobody/mine": the gateway has no address for provider "nobody"; add a credential apiBase, or gatewayParams.apiBase',
        'spec.models[0].modelCredentials.keys.apikey: no provider reads a credential of this name; did you mean "apiKey"?',
      ],
    });
  });

  test('that sets a variable which its container sets itself is let in with a warning, for each of them', async () => {
    const env = [...OWN_VARIABLES.map((name) => ({ name, value: '1' })), { name: 'LOG_LEVEL', value: 'warn' }];
    const { refused, warnings } = await instance({ workload: { env } });
    expect(refused).toEqual([]);
    expect(warnings).toEqual(
      OWN_VARIABLES.map(
        (name, index) =>
          `spec.workload.env[${index}].name: "${name}": is set by the operator itself and is left out of the container; remove it`,
      ),
    );
  });

  test('with an unknown provider override at an address of its own is warned about, a known one is not', async () => {
    const params = {
      model: 'a/b',
      apiBase: 'https://llm.example.com/v1',
      inputCostPerMillionTokens: '0',
      outputCostPerMillionTokens: '0',
    };
    const entry = (customLLMProvider: string) => [
      modelEntry('gpt-4o', { gatewayParams: { ...params, customLLMProvider } }),
    ];
    expect((await instance({ models: entry('ours') })).warnings).toEqual([
      'spec.models[0].gatewayParams.customLLMProvider: "ours": the gateway does not know provider "ours"; check that its apiBase is OpenAI-compatible',
    ]);
    expect((await instance({ models: entry('anthropic') })).warnings).toEqual([]);
  });

  test('with credentials that no request to the provider carries is warned about, with what it takes instead', async () => {
    const keys = Object.fromEntries(
      ['awsAccessKeyId', 'awsRegion', 'vertexCredentials', 'organization'].map((name) => [name, name]),
    );
    await world.put(RESOURCES.secrets, secretOf('cloud', keys));
    const warnings = async (model: string, ...names: string[]) => {
      const modelCredentials = { nameRef: 'cloud', keys: Object.fromEntries(names.map((name) => [name, name])) };
      const params = { model, inputCostPerMillionTokens: '0', outputCostPerMillionTokens: '0' };
      return (await instance({ models: [modelEntry('m', { modelCredentials, gatewayParams: params })] })).warnings;
    };
    expect(await warnings('bedrock/openai.gpt-oss-120b-1:0', 'awsAccessKeyId')).toEqual([
      'spec.models[0].gatewayParams.model: "bedrock/openai.gpt-oss-120b-1:0": the address of provider "bedrock" is made of awsRegion; add that to modelCredentials.keys, or an apiBase',
      'spec.models[0].modelCredentials.keys.awsAccessKeyId: requests to "bedrock" do not carry it; give an API key of Bedrock\'s as apiKey: the gateway signs no requests',
    ]);
    expect(await warnings('bedrock/openai.gpt-oss-120b-1:0', 'awsRegion')).toEqual([]);
    expect((await warnings('vertex_ai/google/gemini-2.5-pro', 'vertexCredentials')).at(-1)).toContain(
      'keep an access token in the Secret as apiKey',
    );
    expect(await warnings('anthropic/claude', 'organization')).toEqual([
      'spec.models[0].modelCredentials.keys.organization: requests to "anthropic" do not carry it; remove it: they carry apiKey, apiBase, apiVersion',
    ]);
    expect(await warnings('openai/gpt-4o', 'organization')).toEqual([]);
  });

  test('whose models their providers list needs no prices, and a model in no list does', async () => {
    const warnings = async (model: string) =>
      (await instance({ models: [modelEntry('gpt-4o', { gatewayParams: { model } })] })).warnings;
    expect(await warnings('openai/gpt-4o-mini')).toEqual([]);
    expect(await warnings('openai/my-own')).toEqual([
      'spec.models[0].gatewayParams: a key with a budget cannot use "gpt-4o" without a price; set inputCostPerMillionTokens and outputCostPerMillionTokens ("0" is free): no price is listed for "openai/my-own"',
    ]);
  });

  test('that loses a model which keys are restricted to is warned about, with their names', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      await world.put(virtualKeys, spare(name, { keyAlias: name, models: ['claude'] }));
    await world.put(
      virtualKeys,
      spare('other', {
        keyAlias: 'o',
        models: ['claude'],
        connectionRef: { instanceRef: { name: 'main', namespace: 'team-b' } },
      }),
    );
    const old = objectOf('GatewayInstance');
    const { refused, warnings } = await instance({ models: [modelEntry('gpt-4o')] }, {}, { oldObject: old });
    expect(refused).toEqual([]);
    expect(warnings).toEqual([
      'spec.models: "claude" is no longer served, and 6 of the keys are restricted to it: team-a/a, team-a/b, team-a/c, team-a/d, team-a/e, and 1 more; change their spec.models, or keep an entry of this name',
    ]);
  });

  test('that moves to another database Secret while it has keys is warned about', async () => {
    await world.put(RESOURCES.secrets, secretOf('database-2', { host: 'h', user: 'u', password: '', name: 'n' }));
    const change = { databaseSecretRef: { ...GOOD.GatewayInstance.databaseSecretRef, nameRef: 'database-2' } };
    const more = { oldObject: objectOf('GatewayInstance') };
    expect((await instance(change, {}, more)).warnings).toEqual([]);
    await world.put(virtualKeys, objectOf('VirtualKey'));
    expect((await instance(change, {}, more)).warnings).toEqual([
      expect.stringContaining('spec.databaseSecretRef: if this is another database'),
    ]);
  });
});

describe('a Secret that the requesting user may not read', () => {
  test('is answered exactly like one that is not there, and is never read', async () => {
    await world.put(RESOURCES.secrets, secretOf('not-yours', { host: 'x' }));
    world.cluster.calls.length = 0;
    const at = (nameRef: string) =>
      told('GatewayInstance', { databaseSecretRef: { ...GOOD.GatewayInstance.databaseSecretRef, nameRef } });
    const [hidden, missing] = [await at('not-yours'), await at('nowhere')];
    expect(hidden.refused.join().replaceAll('not-yours', 'nowhere')).toBe(missing.refused.join());
    expect(world.cluster.calls.filter(({ verb, name }) => verb === 'get' && name === 'not-yours')).toEqual([]);
  });

  test('is not told of where a key would write: reconcile says so later', async () => {
    await world.put(RESOURCES.secrets, secretOf('not-yours', {}, 'team-a'));
    expect((await told('VirtualKey', { secretTemplate: { name: 'not-yours' } })).refused).toEqual([]);
  });

  test('costs one access review a request, however often it is named', async () => {
    const models = ['a', 'b', 'c'].map((name) =>
      modelEntry(name, { modelCredentials: { nameRef: 'creds-claude', keys: { apiKey: 'apiKey' } } }),
    );
    world.cluster.calls.length = 0;
    await told('GatewayInstance', { models }, { annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } });
    expect(world.cluster.calls.filter(({ verb, name }) => verb === 'may' && name === 'creds-claude')).toHaveLength(1);
    expect(world.cluster.calls.filter(({ verb, name }) => verb === 'get' && name === 'creds-claude')).toHaveLength(1);
  });
});

describe('a key', () => {
  const key = (change: object, metadata = {}, more = {}) => told('VirtualKey', change, metadata, more);
  const elsewhere = (name: string, namespace: string) => ({ connectionRef: { instanceRef: { name, namespace } } });

  test('of an instance that does not exist is refused', async () => {
    expect((await key(elsewhere('mian', 'platform'))).refused).toEqual([
      'spec.connectionRef.instanceRef: "platform/mian": there is no GatewayInstance of this name that admits namespace "team-a"; create it first (in the same file: above this), correct name and namespace, or ask its owner to admit this namespace',
    ]);
  });

  test.each([
    ['the same namespace only', { from: 'Same' }],
    [
      'namespaces by a label',
      { from: 'Selector', selector: { matchLabels: { 'kubernetes.io/metadata.name': 'team-b' } } },
    ],
  ])('of an instance that admits %s gets exactly the answer of a missing one', async (_, allowedNamespaces) => {
    const spec = { ...GOOD.GatewayInstance, allowedNamespaces };
    await world.put(gatewayInstances, objectOf('GatewayInstance', spec, { name: 'private' }));
    const refused = (await key(elsewhere('private', 'platform'))).refused.join();
    const missing = (await key(elsewhere('nowhere', 'platform'))).refused.join();
    expect(refused.replaceAll('private', 'nowhere')).toBe(missing);
    const admitted = await validate(
      objectOf(
        'VirtualKey',
        { ...GOOD.VirtualKey, ...elsewhere('private', 'platform'), userRef: undefined, teamRef: undefined },
        { namespace: allowedNamespaces.from === 'Same' ? 'platform' : 'team-b' },
      ),
    );
    expect(admitted.allowed).toBe(true);
  });

  test('of an instance that is being deleted is refused', async () => {
    await world.put(
      gatewayInstances,
      objectOf('GatewayInstance', GOOD.GatewayInstance, { name: 'going', finalizers: ['a/b'] }),
    );
    await world.drop(gatewayInstances, 'platform', 'going');
    expect((await key({ ...elsewhere('going', 'platform'), userRef: undefined, teamRef: undefined })).refused).toEqual([
      expect.stringContaining('spec.connectionRef.instanceRef: "platform/going": is being deleted'),
    ]);
  });

  test('with a misspelt instance is not told that its user and team belong to another one', async () => {
    expect((await key(elsewhere('mian', 'platform'))).refused).toHaveLength(1);
  });

  test('with a model that the instance does not serve is refused, and told the nearest name, else what there is', async () => {
    expect((await key({ models: ['gpt-4O', 'gpt-4o', 'llama'] })).refused).toEqual([
      'VirtualKey "billing" has 2 mistakes:',
      '- spec.models[0]: "gpt-4O": instance "platform/main" serves no model of exactly this name; did you mean "gpt-4o"?',
      '- spec.models[2]: "llama": instance "platform/main" serves no model of exactly this name; add an entry to the instance, or choose among what it serves: "gpt-4o", "claude"',
    ]);
  });

  test('that names all models as other gateways do is told how to', async () => {
    expect((await key({ models: ['*'] })).refused).toEqual([
      'spec.models[0]: "*": instance "platform/main" serves no model of exactly this name; remove it: an empty list means every model of the instance',
    ]);
  });

  test('with a budget for a model that is not served, that it may not use, or that is nothing, is warned about', async () => {
    const modelMaxBudget = {
      'gpt-4o': { maxBudget: '0.0', budgetDuration: '1d' },
      claude: { maxBudget: '1', budgetDuration: '1d' },
      gpt: { maxBudget: '1', budgetDuration: '1d' },
    };
    expect(await key({ models: [], modelMaxBudget })).toEqual({
      refused: [],
      warnings: [
        expect.stringContaining('spec.modelMaxBudget["gpt"]: instance "platform/main" serves no model'),
        'spec.modelMaxBudget["gpt-4o"].maxBudget: "0.0": a budget of nothing is used up from the start: this key never uses the model; raise it to let it',
      ],
    });
    const { claude } = modelMaxBudget;
    expect((await key({ models: ['gpt-4o'], modelMaxBudget: { claude } })).warnings).toEqual([
      'spec.modelMaxBudget["claude"]: the key may not use this model, so nothing is ever spent from this; add it to spec.models, or remove it here',
    ]);
  });

  test('of a paused instance is written with a warning that nothing is acted on, a user and a team too', async () => {
    await world.drop(gatewayInstances, 'platform', 'main');
    await world.put(gatewayInstances, objectOf('GatewayInstance', { ...GOOD.GatewayInstance, paused: true }));
    const warnings = [
      'spec.connectionRef.instanceRef: GatewayInstance platform/main is paused: this is not acted on before its spec.paused is false; delete a VirtualKey to stop it now',
    ];
    for (const kind of ['VirtualKey', 'User', 'Team'] as const) {
      expect(await told(kind, {})).toEqual({ refused: [], warnings });
      const oldObject = objectOf(kind);
      expect(await told(kind, { blocked: true }, {}, { oldObject })).toEqual({ refused: [], warnings });
      const labelled = await told(kind, {}, { labels: { tier: 'gold' } }, { oldObject });
      expect(labelled).toEqual({ refused: [], warnings: [] });
    }
  });

  test('that follows a User is edited with a warning that the User decides', async () => {
    const owner = {
      apiVersion: 'auth.gateway-operator.dev/v1alpha1',
      kind: 'User',
      name: 'alice',
      uid: 'u',
      controller: true,
    };
    const before = objectOf('VirtualKey', GOOD.VirtualKey, { ownerReferences: [owner] });
    const edited = await told(
      'VirtualKey',
      { maxBudget: '99' },
      { ownerReferences: [owner] },
      { operation: 'UPDATE', oldObject: before },
    );
    expect(edited).toEqual({
      refused: [],
      warnings: ['spec: this key follows User "alice" and is put back as the User says; edit the User'],
    });
    const labelled = await told(
      'VirtualKey',
      {},
      { ownerReferences: [owner] },
      { operation: 'UPDATE', oldObject: before },
    );
    expect(labelled.warnings).toEqual([]);
  });

  test('that asks for something nothing acts on yet is told so', async () => {
    const warned = async (kind: KindName, spec: object) => (await told(kind, spec)).warnings;
    expect(await warned('VirtualKey', { rpmLimit: 60, tags: ['nightly'], softBudget: '1' })).toEqual([]);
    // Of what is listed now; the list gets shorter.
    const fields = { image: 'ours:1', serviceAccountName: 'ours' };
    const vain = Object.keys(fields).filter((field) => notYetActedOn.GatewayInstance.includes(`workload.${field}`));
    expect(await warned('GatewayInstance', { workload: { type: 'Deployment', ...fields } })).toEqual(
      vain.map((field) => expect.stringContaining(`spec.workload.${field}: this version accepts the field`)),
    );
  });

  test('whose alias another key of the instance has is refused; names of other namespaces stay untold', async () => {
    await world.put(virtualKeys, spare('first', {}));
    expect((await key({})).refused).toEqual([
      'spec.keyAlias: "billing-service": VirtualKey "first" has this already on instance "platform/main"; choose another, or delete the other one first',
    ]);
    await world.drop(virtualKeys, 'team-a', 'first');
    await world.put(virtualKeys, spare('secret-project', {}, 'team-b'));
    expect((await key({})).refused).toEqual([
      'spec.keyAlias: "billing-service": a VirtualKey of another namespace has this already on instance "platform/main"; choose another, or delete the other one first',
    ]);
  });

  test('may have an alias that stands on another instance, or on a key that is being deleted, or on itself', async () => {
    await world.put(
      virtualKeys,
      spare('there', { connectionRef: { instanceRef: { name: 'main', namespace: 'team-b' } } }),
    );
    await world.put(virtualKeys, objectOf('VirtualKey', GOOD.VirtualKey, { name: 'going', finalizers: ['a/b'] }));
    await world.drop(virtualKeys, 'team-a', 'going');
    await world.put(virtualKeys, objectOf('VirtualKey'));
    expect(await key({})).toEqual({ refused: [], warnings: [] });
  });

  test('whose user or team is missing, or of another instance, is refused', async () => {
    const connectionRef = { instanceRef: { name: 'other', namespace: 'platform' } };
    await world.put(users, spare('bob', { connectionRef, userEmail: 'bob@example.com' }, 'team-a', 'User'));
    expect((await key({ userRef: { name: 'bob' }, teamRef: { name: 'nobody' } })).refused).toEqual([
      'VirtualKey "billing" has 2 mistakes:',
      '- spec.userRef.name: "bob": this User belongs to another instance (platform/other); refer to one of the same instance',
      '- spec.teamRef.name: "nobody": there is no Team of this name in namespace "team-a"; create it first (in the same file: above this), or correct the name',
    ]);
  });

  test('whose Secret would be somebody else’s is refused', async () => {
    await world.put(RESOURCES.secrets, secretOf('billing-key', {}, 'team-a'));
    expect((await key({})).refused).toEqual([
      'metadata.name: "billing": a Secret "billing-key" that is not this key\'s is there already; delete it, or name another in spec.secretTemplate.name',
    ]);
    expect((await key({ secretTemplate: { name: 'billing-key' } })).refused).toEqual([
      expect.stringContaining('spec.secretTemplate.name: "billing-key": a Secret of this name that is not this key\'s'),
    ]);
  });

  test('may have a Secret that is its own, or that was retained', async () => {
    const labels = { [OWNED_LABEL]: OWNED };
    const owner = (name: string) => ({
      apiVersion: 'auth.gateway-operator.dev/v1alpha1',
      kind: 'VirtualKey',
      name,
      uid: 'u',
    });
    const secret = (name: string, owners: ReturnType<typeof owner>[]) => ({
      ...secretOf(name, {}, 'team-a'),
      metadata: { name, namespace: 'team-a', labels, ownerReferences: owners },
    });
    await world.put(RESOURCES.secrets, secret('own', [owner('billing')]));
    await world.put(RESOURCES.secrets, secret('kept', []));
    await world.put(RESOURCES.secrets, secret('theirs', [owner('other')]));
    const at = (name: string) => key({ secretTemplate: { name } });
    expect((await at('own')).refused).toEqual([]);
    expect((await at('kept')).refused).toEqual([]);
    expect((await at('theirs')).refused).toHaveLength(1);
  });

  test('whose annotation asks for a rotation in no words is refused', async () => {
    const name = 'auth.gateway-operator.dev/rotate';
    const asked = async (text: string) => (await told('VirtualKey', {}, { annotations: { [name]: text } })).refused;
    expect(await asked('2026-11-21')).toEqual([]);
    expect(await asked(' ')).toEqual([
      `metadata.annotations["${name}"]: " ": asks for no rotation; write 1 to 256 visible characters that it did not say before, e.g. the date: each new text is one rotation`,
    ]);
    expect(await asked('x'.repeat(257))).toHaveLength(1);
  });

  test('with a budget of nothing is warned about', async () => {
    expect((await key({ maxBudget: '0.00' })).warnings).toEqual([
      'spec.maxBudget: "0.00": a budget of nothing is used up from the start: this key never works, for free models neither; raise it to let it work',
    ]);
  });

  test('says why its alias and its instance never change', async () => {
    const connectionRef = { instanceRef: { name: 'main', namespace: 'other' } };
    const { refused } = await key({ keyAlias: 'new', connectionRef }, {}, { oldObject: objectOf('VirtualKey') });
    expect(refused).toContainEqual(expect.stringMatching(/- spec\.keyAlias: "new": is immutable, /));
    expect(refused).toContainEqual(expect.stringMatching(/- spec\.connectionRef: is immutable, /));
  });
});

describe('a user', () => {
  const user = (change: object, metadata = {}, more = {}) => told('User', change, metadata, more);

  test('whose address another user of the instance has is refused', async () => {
    expect((await user({ keyAlias: 'x' }, { name: 'alice-2' })).refused).toEqual([
      'spec.userEmail: "alice@example.com": User "alice" has this already on instance "platform/main"; choose another, or delete the other one first',
    ]);
  });

  test('whose key alias a key that is not theirs has is refused; without autoCreateKey it does not matter', async () => {
    await world.put(virtualKeys, spare('service', { keyAlias: 'alice' }));
    expect((await user({})).refused).toEqual([
      expect.stringContaining('spec.keyAlias: "alice": VirtualKey "service" has this already'),
    ]);
    expect((await user({ autoCreateKey: false })).refused).toEqual([]);
  });

  test('whose team is missing, or whose model is not served, is refused', async () => {
    expect((await user({ teamRefs: [{ name: 'research' }, { name: 'nobody' }], models: ['gpt'] })).refused).toEqual([
      'User "alice" has 2 mistakes:',
      expect.stringContaining('- spec.models[0]: "gpt"'),
      expect.stringContaining('- spec.teamRefs[1].name: "nobody": there is no Team of this name'),
    ]);
  });

  test('in whose way a VirtualKey stands is warned about, and not about their own', async () => {
    const stored = await world.cluster.get(users, 'team-a', 'alice');
    const uid = stored?.metadata.uid ?? '';
    await world.put(virtualKeys, spare('alice', { keyAlias: 'alice' }));
    expect(await user({}, { uid })).toEqual({
      refused: [],
      warnings: [expect.stringContaining('spec.autoCreateKey: a VirtualKey "alice" that this User does not own')],
    });
    await world.drop(virtualKeys, 'team-a', 'alice');
    const ownerReferences = [{ apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'User', name: 'alice', uid }];
    await world.put(
      virtualKeys,
      objectOf('VirtualKey', { ...GOOD.VirtualKey, keyAlias: 'alice' }, { name: 'alice', ownerReferences }),
    );
    expect(await user({}, { uid })).toEqual({ refused: [], warnings: [] });
  });

  test('whose edit replaces their key is warned about', async () => {
    const oldObject = objectOf('User');
    expect((await user({ keyAlias: 'new' }, {}, { oldObject })).warnings).toEqual([
      'spec.keyAlias: "new": the user\'s key is replaced by a new one; give clients the new value from its Secret',
    ]);
    await world.put(gatewayInstances, objectOf('GatewayInstance', GOOD.GatewayInstance, { name: 'other' }));
    const connectionRef = { instanceRef: { name: 'other', namespace: 'platform' } };
    expect((await user({ connectionRef, teamRefs: [] }, {}, { oldObject })).warnings).toEqual([
      "spec.connectionRef: the user's key is replaced by a new one; give clients the new value from its Secret",
    ]);
    expect((await user({ maxBudget: '26' }, {}, { oldObject })).warnings).toEqual([]);
  });

  test('with autoCreateKey needs what the key needs', async () => {
    const { refused } = await user({ keyAlias: undefined, budgetDuration: undefined });
    expect(refused).toEqual([
      'User "alice" has 2 mistakes:',
      expect.stringContaining('- spec.keyAlias: '),
      expect.stringContaining('- spec.budgetDuration: '),
    ]);
  });
});

describe('a team', () => {
  test('whose alias another team of the instance has is refused', async () => {
    expect((await told('Team', {}, { name: 'research-2' })).refused).toEqual([
      'spec.teamAlias: "research": Team "research" has this already on instance "platform/main"; choose another, or delete the other one first',
    ]);
  });

  test('whose members are missing or of another instance is let in with warnings, once each is new', async () => {
    const connectionRef = { instanceRef: { name: 'other', namespace: 'platform' } };
    await world.put(users, spare('bob', { connectionRef, userEmail: 'b@example.com' }, 'team-a', 'User'));
    const members = [{ name: 'alice' }, { name: 'bob' }, { name: 'nobody' }];
    expect(await told('Team', { members })).toEqual({
      refused: [],
      warnings: [
        'spec.members[1].name: "bob": this User belongs to another instance (platform/other); refer to one of the same instance',
        'spec.members[2].name: "nobody": there is no User of this name in namespace "team-a"; create it, or correct the name',
      ],
    });
    const oldObject = objectOf('Team', { ...GOOD.Team, members });
    expect((await told('Team', { members }, {}, { oldObject })).warnings).toEqual([]);
  });

  test('of an unknown instance, with a model it does not serve, is refused', async () => {
    expect((await told('Team', { models: ['x'] })).refused).toHaveLength(1);
    expect(
      (await told('Team', { connectionRef: { instanceRef: { name: 'x', namespace: 'y' } } })).refused,
    ).toHaveLength(1);
    await world.drop(teams, 'team-a', 'research');
  });
});

describe('a dry run', () => {
  test('of a file that would create what is missing warns instead of refusing', async () => {
    for (const name of ['database', 'store', 'creds-claude']) await world.drop(RESOURCES.secrets, 'platform', name);
    const instance = await told('GatewayInstance', {}, {}, { dryRun: true });
    expect(instance.refused).toEqual([]);
    expect(instance.warnings).toHaveLength(3);
    const key = await told(
      'VirtualKey',
      {
        connectionRef: { instanceRef: { name: 'new', namespace: 'platform' } },
        userRef: { name: 'new' },
        teamRef: { name: 'new' },
      },
      {},
      { dryRun: true },
    );
    expect(key.refused).toEqual([]);
    expect(key.warnings).toHaveLength(3);
  });

  test('still refuses what no other object of the file could make right', async () => {
    expect(
      (await told('VirtualKey', { maxBudget: 'ten', models: ['llama'] }, {}, { dryRun: true })).refused,
    ).toHaveLength(3);
  });
});

describe('on update', () => {
  test('an old mistake is a warning: a label, a budget, a block can always be changed', async () => {
    const bad = { ...GOOD.VirtualKey, models: ['withdrawn', 'gpt-4o'], userRef: { name: 'gone' } };
    const oldObject = objectOf('VirtualKey', bad);
    const labelled = await validate(objectOf('VirtualKey', bad, { labels: { a: 'b' } }), { oldObject });
    expect(labelled.allowed).toBe(true);
    expect(labelled.warnings).toEqual([
      expect.stringContaining('spec.models[0]: "withdrawn"'),
      expect.stringContaining('spec.userRef.name: "gone"'),
    ]);
    const blocked = await told(
      'VirtualKey',
      { ...bad, blocked: true, models: ['gpt-4o', 'withdrawn'] },
      {},
      { oldObject },
    );
    expect(blocked.refused).toEqual([]);
  });

  test('a new mistake beside an old one is refused, and so is an old value in a new place', async () => {
    const oldObject = objectOf('VirtualKey', { ...GOOD.VirtualKey, models: ['withdrawn'] });
    expect((await told('VirtualKey', { models: ['withdrawn', 'llama'] }, {}, { oldObject })).refused).toEqual([
      expect.stringContaining('spec.models[1]: "llama"'),
    ]);
    expect(
      (await told('VirtualKey', { models: ['withdrawn'], userRef: { name: 'gone' } }, {}, { oldObject })).refused,
    ).toEqual([expect.stringContaining('spec.userRef.name: "gone"')]);
  });

  test('entries are known by their identifier, so reordering models makes no old mistake new', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'creds-claude');
    const oldObject = objectOf('GatewayInstance');
    const reversed = { models: [modelEntry('claude'), modelEntry('gpt-4o')] };
    const { refused, warnings } = await told('GatewayInstance', reversed, {}, { oldObject });
    expect(refused).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('spec.models[0].modelCredentials.nameRef: "creds-claude"')]);
    const renamed = { models: [modelEntry('claude', { identifier: 'new' }), modelEntry('gpt-4o')] };
    expect((await told('GatewayInstance', renamed, {}, { oldObject })).refused).toHaveLength(1);
  });

  test('a mistake that the schema sees is a warning too where it stood before', async () => {
    const bad = { ...GOOD.VirtualKey, maxBudget: 'ten' };
    const oldObject = objectOf('VirtualKey', bad);
    expect((await told('VirtualKey', { ...bad, blocked: true }, {}, { oldObject })).refused).toEqual([]);
    expect((await told('VirtualKey', { ...bad, maxBudget: 'eleven' }, {}, { oldObject })).refused).toHaveLength(1);
    const mutated = await ask(
      depsOf(world.cluster),
      '/mutate',
      requestOf(objectOf('VirtualKey', { ...bad, blocked: true }), { oldObject }),
    );
    expect(mutated.allowed).toBe(true);
  });
});
