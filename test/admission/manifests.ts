// Which files do people apply, good ones and bad ones, and what must a bad one be told?
import type { KubeObject } from '#core/ports/cluster.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/group.ts';
import type { KindName } from '#crds/kinds.ts';
import { GOOD, modelEntry, objectOf, secretOf } from './fixtures.ts';

type Json = Record<string, unknown>;

/** With `data`: of `stringData` kubectl always says `configured`. */
function encoded(name: string, entries: Record<string, string>): KubeObject {
  const { stringData: _text, ...secret } = secretOf(name, {});
  const data = Object.entries(entries).map(([entry, text]) => [entry, Buffer.from(text).toString('base64')]);
  return { ...secret, data: Object.fromEntries(data) } as KubeObject;
}

/** Secrets, then the instance, then its team, user and key: a file as SPEC.md has it. */
export const BASE: ReadonlyArray<KubeObject> = [
  encoded('database', { host: 'postgres', user: 'gateway', password: 'x', name: 'gateway' }),
  encoded('store', { host: 'valkey', port: '6379', password: '' }),
  encoded('creds-gpt-4o', { apiKey: 'x' }),
  encoded('creds-claude', { apiKey: 'x' }),
  objectOf('GatewayInstance'),
  objectOf('Team', { ...GOOD.Team, members: [] }),
  objectOf('User'),
  objectOf('VirtualKey'),
];

let count = 0;
/** An object of its own name, and with aliases of its own unless they are what it is about. */
function of(kind: KindName, change: Json = {}, metadata: Json = {}): KubeObject {
  count += 1;
  const alone: Record<KindName, Json> = {
    GatewayInstance: {},
    VirtualKey: { keyAlias: `key-${count}` },
    User: { userEmail: `user-${count}@example.com`, keyAlias: `user-${count}` },
    Team: { teamAlias: `team-${count}`, members: [] },
  };
  return objectOf(
    kind,
    { ...GOOD[kind], ...alone[kind], ...change },
    { name: `${kind.toLowerCase()}-${count}`, ...metadata },
  );
}

const to = (name: string, namespace = 'platform') => ({ connectionRef: { instanceRef: { name, namespace } } });
const entries = (...list: Json[]) => ({ models: list });
const { databaseSecretRef, redisSecretRef } = GOOD.GatewayInstance;

export const GOOD_ONES: ReadonlyArray<KubeObject> = [
  of('GatewayInstance'),
  of('GatewayInstance', { models: [] }),
  of(
    'GatewayInstance',
    entries(
      modelEntry('gpt-4o'),
      modelEntry('gpt-4o', { identifier: 'second', requiresAuth: false, modelCredentials: undefined }),
    ),
  ),
  of(
    'GatewayInstance',
    entries(
      modelEntry('gpt-4o'),
      modelEntry('twin', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'apiKey' } } }),
    ),
    {
      annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' },
    },
  ),
  of('GatewayInstance', { allowedNamespaces: { from: 'Same' }, paused: true, keyValueInStatus: 'Redacted' }),
  of('GatewayInstance', entries(modelEntry('gpt-4o', { gatewayParams: { model: 'openai/gpt-4o' } }))),
  of(
    'GatewayInstance',
    entries(
      modelEntry('gpt-4o', {
        gatewayParams: { model: 'x/a/b:c', customLLMProvider: 'openai', weight: 3, timeout: '20s' },
      }),
    ),
  ),
  of('GatewayInstance', { routing: { strategy: 'Priority', retries: 0, timeouts: { total: '1m' } } }),
  ...['0', '0.000000001', '12.50', '1000000000'].map((maxBudget) => of('VirtualKey', { maxBudget })),
  ...['1s', '90m', '24h', '1w', '1mo', '36525d'].map((budgetDuration) => of('VirtualKey', { budgetDuration })),
  of('VirtualKey', { models: [] }),
  of('VirtualKey', { models: undefined, userRef: undefined, teamRef: undefined }),
  of('VirtualKey', { models: ['gpt-4o', 'claude'], duration: '90d', softBudget: '8', blocked: true }),
  of('VirtualKey', { keyAlias: 'Ärger / "quoted" = a,b\\c 🙂' }),
  of('VirtualKey', { rpmLimit: 10, tpmLimit: 1_000_000, maxParallelRequests: 2, tags: ['a', 'b'] }),
  of('VirtualKey', { rotation: { every: '30d' } }),
  of('VirtualKey', { rotation: { every: '30d', overlap: '29d' } }),
  of('VirtualKey', { rotation: { every: '1s' } }),
  of('VirtualKey', {
    secretTemplate: { name: 'own-name', entry: 'token', entries: { OPENAI_API_KEY: '$' + '{key}' } },
  }),
  of('VirtualKey', { deletionPolicy: 'Retain', budgetWindow: 'Calendar' }),
  of('VirtualKey', { modelMaxBudget: { 'gpt-4o': { maxBudget: '1', budgetDuration: '1d' } } }),
  of('VirtualKey', {}, { name: '2gpt.4' }),
  of('VirtualKey', {}, { name: 'n'.repeat(253) }),
  of('VirtualKey', {}, { labels: { team: 'a' }, annotations: { note: 'x'.repeat(5000) } }),
  of('User'),
  of('User', { userAlias: undefined }),
  of('User', { autoCreateKey: false, keyAlias: undefined, maxBudget: undefined, budgetDuration: undefined }),
  of('User', { models: [], teamRefs: [], duration: '1d' }),
  of('User', { userAlias: 'Ada Lovelace', blocked: true, rpmLimit: 1 }),
  of('Team'),
  of('Team', { members: [{ name: 'alice' }], models: ['claude'] }),
  of('Team', { maxBudget: undefined, budgetDuration: '1w' }),
  of('Team', { teamAlias: 'Forschung & Entwicklung' }),
];

/** Every bad object with what its answer must contain. */
export const BAD_ONES: ReadonlyArray<readonly [KubeObject, ...string[]]> = [
  [of('VirtualKey', { maxBudget: undefined }), 'spec.maxBudget: is required'],
  [of('VirtualKey', { maxBudget: 10 }), 'spec.maxBudget: 10: ', 'quotes'],
  ...['ten', '-1', '1e3', '.5', '5.', '012', '$5', '1,5', '1000000001', '0.0000000001', ''].map(
    (maxBudget) => [of('VirtualKey', { maxBudget }), `spec.maxBudget: ${JSON.stringify(maxBudget)}: `] as const,
  ),
  ...['30', 'd', '0d', '1.5h', '1y', 'monthly', '1d12h', '36526d'].map(
    (budgetDuration) =>
      [of('VirtualKey', { budgetDuration }), `spec.budgetDuration: ${JSON.stringify(budgetDuration)}: `] as const,
  ),
  [of('VirtualKey', { keyAlias: undefined }), 'spec.keyAlias: is required'],
  [of('VirtualKey', { keyAlias: ' a' }), 'spec.keyAlias: " a": '],
  [of('VirtualKey', { keyAlias: 'x'.repeat(257) }), 'spec.keyAlias: "xxx', '256'],
  [
    of('VirtualKey', { keyAlias: GOOD.VirtualKey.keyAlias }),
    'spec.keyAlias: "billing-service": VirtualKey "billing" has this already',
  ],
  [
    of(
      'VirtualKey',
      { keyAlias: GOOD.VirtualKey.keyAlias, userRef: undefined, teamRef: undefined },
      { namespace: 'team-b' },
    ),
    'a VirtualKey of another namespace has this already',
  ],
  [of('VirtualKey', { connectionRef: undefined }), 'spec.connectionRef: is required'],
  [of('VirtualKey', to('mian')), 'spec.connectionRef.instanceRef: "platform/mian": there is no GatewayInstance'],
  [
    of('VirtualKey', to('main', 'team-a')),
    'spec.connectionRef.instanceRef: "team-a/main": there is no GatewayInstance',
  ],
  [of('VirtualKey', { models: ['gpt-4'] }), 'spec.models[0]: "gpt-4": ', 'did you mean "gpt-4o"?'],
  [of('VirtualKey', { models: ['GPT-4O'] }), 'did you mean "gpt-4o"?'],
  [of('VirtualKey', { models: ['gpt-4o', 'mistral'] }), 'spec.models[1]: "mistral": ', 'it serves: "gpt-4o", "claude"'],
  [of('VirtualKey', { models: ['gpt-4o', 'gpt-4o'] }), 'spec.models[1]: "gpt-4o": stands in the list already'],
  [of('VirtualKey', { models: 'gpt-4o' }), 'spec.models: "gpt-4o": '],
  [of('VirtualKey', { softBudget: '11' }), 'spec.softBudget: "11": '],
  [of('VirtualKey', { rotation: { every: '1h', overlap: '1h' } }), 'spec.rotation.overlap: "1h": '],
  [of('VirtualKey', { rotation: {} }), 'spec.rotation.every: is required'],
  [of('VirtualKey', { userRef: { name: 'nobody' } }), 'spec.userRef.name: "nobody": there is no User'],
  [of('VirtualKey', { teamRef: { name: 'nobody' } }), 'spec.teamRef.name: "nobody": there is no Team'],
  [
    of('VirtualKey', { secretTemplate: { name: 'theirs' } }),
    'spec.secretTemplate.name: "theirs": ',
    "that is not this key's",
  ],
  [of('VirtualKey', {}, { name: 'taken' }), 'metadata.name: "taken": a Secret "taken-key"'],
  [of('VirtualKey', { rpmLimit: 0 }), 'spec.rpmLimit: 0: '],
  [of('VirtualKey', { blocked: 'yes' }), 'spec.blocked: "yes": ', 'without quotes'],
  [of('VirtualKey', { deletionPolicy: 'Keep' }), 'spec.deletionPolicy: "Keep": '],
  [
    of('VirtualKey', { maxBudget: 'x', budgetDuration: 'y', keyAlias: '' }),
    'has 3 mistakes',
    'spec.maxBudget',
    'spec.budgetDuration',
    'spec.keyAlias',
  ],
  [of('User', { userEmail: 'alice' }), 'spec.userEmail: "alice": '],
  [
    of('User', { userEmail: GOOD.User.userEmail }),
    'spec.userEmail: "alice@example.com": User "alice" has this already',
  ],
  [of('User', { keyAlias: undefined }), 'spec.keyAlias: '],
  [
    of('User', { keyAlias: GOOD.VirtualKey.keyAlias }),
    'spec.keyAlias: "billing-service": VirtualKey "billing" has this already',
  ],
  [of('User', { maxBudget: undefined }), 'spec.maxBudget: '],
  [of('User', { teamRefs: [{ name: 'nobody' }] }), 'spec.teamRefs[0].name: "nobody": there is no Team'],
  [of('User', { teamRefs: [{ name: 'research' }, { name: 'research' }] }), 'spec.teamRefs[1].name: "research": '],
  [of('User', { models: ['llama'] }), 'spec.models[0]: "llama": '],
  [of('Team', { teamAlias: GOOD.Team.teamAlias }), 'spec.teamAlias: "research": Team "research" has this already'],
  [of('Team', { ...to('nowhere') }), 'spec.connectionRef.instanceRef: "platform/nowhere": '],
  [of('Team', { maxBudget: '1 USD' }), 'spec.maxBudget: "1 USD": '],
  [
    of('GatewayInstance', { databaseSecretRef: { ...databaseSecretRef, nameRef: 'nowhere' } }),
    'spec.databaseSecretRef.nameRef: "nowhere": there is no Secret',
  ],
  [
    of('GatewayInstance', { redisSecretRef: { ...redisSecretRef, nameRef: 'nowhere' } }),
    'spec.redisSecretRef.nameRef: "nowhere": there is no Secret',
  ],
  [
    of('GatewayInstance', {
      databaseSecretRef: { ...databaseSecretRef, keys: { ...databaseSecretRef.keys, dbnameSecret: 'db' } },
    }),
    'spec.databaseSecretRef.keys.dbnameSecret: "db": ',
    'it has host, name, password, user',
  ],
  [of('GatewayInstance', { databaseSecretRef: undefined }), 'spec.databaseSecretRef: is required'],
  [
    of('GatewayInstance', entries(modelEntry('a', { modelCredentials: undefined }))),
    'spec.models[0].modelCredentials: ',
    'requiresAuth is true',
  ],
  [
    of('GatewayInstance', entries(modelEntry('gpt-4o', { requiresAuth: false }))),
    'spec.models[0].modelCredentials: ',
    'requiresAuth is false',
  ],
  [
    of('GatewayInstance', entries(modelEntry('a', { gatewayParams: { model: 'gpt-4o' } }))),
    'spec.models[0].gatewayParams.model: "gpt-4o": ',
  ],
  [
    of('GatewayInstance', entries(modelEntry('gpt-4o'), modelEntry('claude', { identifier: 'gpt-4o' }))),
    'spec.models[1].identifier: "gpt-4o": stands in the list already',
  ],
  [
    of(
      'GatewayInstance',
      entries(
        modelEntry('gpt-4o'),
        modelEntry('b', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'apiKey' } } }),
      ),
    ),
    'spec.models[1].modelCredentials.nameRef: "creds-gpt-4o": is the Secret of entry "gpt-4o" already',
  ],
  [
    of(
      'GatewayInstance',
      entries(modelEntry('gpt-4o', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'key' } } })),
    ),
    'spec.models[0].modelCredentials.keys.apiKey: "key": ',
    'it has apiKey',
  ],
  [
    of('GatewayInstance', entries(modelEntry('lost'))),
    'spec.models[0].modelCredentials.nameRef: "creds-lost": there is no Secret',
  ],
  [
    of(
      'GatewayInstance',
      entries(modelEntry('gpt-4o', { gatewayParams: { model: 'openai/x', inputCostPerMillionTokens: '-1' } })),
    ),
    'spec.models[0].gatewayParams.inputCostPerMillionTokens: "-1": ',
  ],
  [of('GatewayInstance', {}, { name: 'n'.repeat(41) }), 'metadata.name: '],
  [of('GatewayInstance', {}, { name: '2gpt' }), 'metadata.name: "2gpt": '],
  [of('GatewayInstance', { allowedNamespaces: { from: 'Selector' } }), 'spec.allowedNamespaces.selector: '],
  [of('GatewayInstance', { workload: { type: 'External' } }), 'spec.workload.url: '],
];

/** Secrets that stand in the way of keys. */
export const IN_THE_WAY: ReadonlyArray<KubeObject> = [
  secretOf('theirs', {}, 'team-a'),
  secretOf('taken-key', {}, 'team-a'),
];
