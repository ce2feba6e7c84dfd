// Which files do people apply, good ones and bad ones, and what must a bad one be told?
import type { KubeObject } from '#core/ports/cluster.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import { GOOD, modelEntry, objectOf, secretOf } from './fixtures.ts';

type Json = Record<string, unknown>;

/** With `data`: of `stringData` kubectl always says `configured`. */
function encoded(name: string, entries: Record<string, string>): KubeObject {
  const { stringData: _text, ...secret } = secretOf(name, {});
  const data = Object.entries(entries).map(([entry, text]) => [entry, Buffer.from(text).toString('base64')]);
  return { ...secret, data: Object.fromEntries(data) } as KubeObject;
}

/** Secrets, then the instance, then its team, user and key: one file, as people write it. */
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

const policies = (...list: ReadonlyArray<Json>) => ({ keyPolicies: list });
const inTeamA = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'team-a' } } };
const calendar = { maxBudget: '1000', budgetDuration: '1mo', budgetWindow: 'Calendar' };

export const GOOD_ONES: ReadonlyArray<KubeObject> = [
  of('GatewayInstance'),
  of(
    'GatewayInstance',
    policies(
      { name: 'lab', ...inTeamA, require: ['teamRef'], models: ['gpt-4o'], perKey: { rpmLimit: 60 } },
      { name: 'everybody-else', perNamespace: { ...calendar, budgetTimeZone: 'Europe/Berlin' } },
    ),
    { name: 'limited' },
  ),
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
    secretTemplate: { name: 'own-name', data: { token: '$' + '{key}', OPENAI_API_KEY: '$' + '{key}' } },
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
  [of('VirtualKey', { maxBudget: undefined }), 'spec.maxBudget: Required value: add this field'],
  [of('VirtualKey', { maxBudget: 10 }), 'spec.maxBudget: Invalid value: 10: ', 'quotes'],
  ...['ten', '-1', '1e3', '.5', '5.', '012', '$5', '1,5', '1000000001', '0.0000000001', ''].map(
    (maxBudget) =>
      [of('VirtualKey', { maxBudget }), `spec.maxBudget: Invalid value: ${JSON.stringify(maxBudget)}: `] as const,
  ),
  ...['30', 'd', '0d', '1.5h', '1y', 'monthly', '1d12h', '36526d'].map(
    (budgetDuration) =>
      [
        of('VirtualKey', { budgetDuration }),
        `spec.budgetDuration: Invalid value: ${JSON.stringify(budgetDuration)}: `,
      ] as const,
  ),
  [of('VirtualKey', { keyAlias: undefined }), 'spec.keyAlias: Required value: '],
  [of('VirtualKey', { keyAlias: ' a' }), 'spec.keyAlias: Invalid value: " a": '],
  [
    of('VirtualKey', { keyAlias: 'x'.repeat(257) }),
    'spec.keyAlias: Too long: "xxx',
    'may not be more than 256 characters',
  ],
  [
    of('VirtualKey', { keyAlias: GOOD.VirtualKey.keyAlias }),
    'spec.keyAlias: Duplicate value: "billing-service": is already used by VirtualKey "billing" on instance "platform/main"',
  ],
  [
    of(
      'VirtualKey',
      { keyAlias: GOOD.VirtualKey.keyAlias, userRef: undefined, teamRef: undefined },
      { namespace: 'team-b' },
    ),
    'is already used by a VirtualKey of another namespace on instance "platform/main"',
  ],
  [of('VirtualKey', { connectionRef: undefined }), 'spec.connectionRef: Required value: '],
  [of('VirtualKey', to('mian')), 'spec.connectionRef.instanceRef: Not found: "platform/mian": no GatewayInstance'],
  [
    of('VirtualKey', to('main', 'team-a')),
    'spec.connectionRef.instanceRef: Not found: "team-a/main": no GatewayInstance',
  ],
  [of('VirtualKey', { models: ['gpt-4'] }), 'spec.models[0]: Not found: "gpt-4": ', 'did you mean "gpt-4o"?'],
  [of('VirtualKey', { models: ['GPT-4O'] }), 'did you mean "gpt-4o"?'],
  [
    of('VirtualKey', { models: ['gpt-4o', 'mistral'] }),
    'spec.models[1]: Not found: "mistral": ',
    'choose one of its models: "gpt-4o", "claude"',
  ],
  [
    of('VirtualKey', { models: ['gpt-4o', 'gpt-4o'] }),
    'spec.models[1]: Duplicate value: "gpt-4o": is already element 0 of the list',
  ],
  [of('VirtualKey', { models: 'gpt-4o' }), 'spec.models: Invalid value: "gpt-4o": must be a list'],
  [of('VirtualKey', { softBudget: '11' }), 'spec.softBudget: Invalid value: "11": '],
  [of('VirtualKey', { rotation: { every: '1h', overlap: '1h' } }), 'spec.rotation.overlap: Invalid value: "1h": '],
  [of('VirtualKey', { rotation: {} }), 'spec.rotation.every: Required value: '],
  [of('VirtualKey', { userRef: { name: 'nobody' } }), 'spec.userRef.name: Not found: "nobody": no User'],
  [of('VirtualKey', { teamRef: { name: 'nobody' } }), 'spec.teamRef.name: Not found: "nobody": no Team'],
  [
    of('VirtualKey', { secretTemplate: { name: 'theirs' } }),
    'spec.secretTemplate.name: Invalid value: "theirs": ',
    "is not this key's",
  ],
  [of('VirtualKey', {}, { name: 'taken' }), 'metadata.name: Invalid value: "taken": Secret "taken-key"'],
  [of('VirtualKey', { rpmLimit: 0 }), 'spec.rpmLimit: Invalid value: 0: must be at least 1'],
  [of('VirtualKey', { blocked: 'yes' }), 'spec.blocked: Invalid value: "yes": must be true or false', 'without quotes'],
  [
    of('VirtualKey', { deletionPolicy: 'Keep' }),
    'spec.deletionPolicy: Unsupported value: "Keep": must be one of "Delete", "Retain"',
  ],
  [
    of('VirtualKey', { maxBudget: 'x', budgetDuration: 'y', keyAlias: '' }),
    'is invalid:',
    'spec.maxBudget',
    'spec.budgetDuration',
    'spec.keyAlias',
  ],
  [of('User', { userEmail: 'alice' }), 'spec.userEmail: Invalid value: "alice": '],
  [
    of('User', { userEmail: GOOD.User.userEmail }),
    'spec.userEmail: Duplicate value: "alice@example.com": is already used by User "alice" on instance "platform/main"',
  ],
  [of('User', { keyAlias: undefined }), 'spec.keyAlias: Required value: '],
  [
    of('User', { keyAlias: GOOD.VirtualKey.keyAlias }),
    'spec.keyAlias: Duplicate value: "billing-service": is already used by VirtualKey "billing" on instance "platform/main"',
  ],
  [of('User', { maxBudget: undefined }), 'spec.maxBudget: Required value: '],
  [of('User', { teamRefs: [{ name: 'nobody' }] }), 'spec.teamRefs[0].name: Not found: "nobody": no Team'],
  [
    of('User', { teamRefs: [{ name: 'research' }, { name: 'research' }] }),
    'spec.teamRefs[1].name: Duplicate value: "research": ',
  ],
  [of('User', { models: ['llama'] }), 'spec.models[0]: Not found: "llama": '],
  [
    of('Team', { teamAlias: GOOD.Team.teamAlias }),
    'spec.teamAlias: Duplicate value: "research": is already used by Team "research" on instance "platform/main"',
  ],
  [of('Team', { ...to('nowhere') }), 'spec.connectionRef.instanceRef: Not found: "platform/nowhere": '],
  [of('Team', { maxBudget: '1 USD' }), 'spec.maxBudget: Invalid value: "1 USD": '],
  [
    of('GatewayInstance', { databaseSecretRef: { ...databaseSecretRef, nameRef: 'nowhere' } }),
    'spec.databaseSecretRef.nameRef: Not found: "nowhere": no readable Secret',
  ],
  [
    of('GatewayInstance', { redisSecretRef: { ...redisSecretRef, nameRef: 'nowhere' } }),
    'spec.redisSecretRef.nameRef: Not found: "nowhere": no readable Secret',
  ],
  [
    of('GatewayInstance', {
      databaseSecretRef: { ...databaseSecretRef, keys: { ...databaseSecretRef.keys, dbnameSecret: 'db' } },
    }),
    'spec.databaseSecretRef.keys.dbnameSecret: Not found: "db": ',
    'it has host, name, password, user',
  ],
  [of('GatewayInstance', { databaseSecretRef: undefined }), 'spec.databaseSecretRef: Required value: '],
  [
    of('GatewayInstance', entries(modelEntry('a', { modelCredentials: undefined }))),
    'spec.models[0].modelCredentials: ',
    'requiresAuth is true',
  ],
  [
    of('GatewayInstance', entries(modelEntry('gpt-4o', { requiresAuth: false }))),
    'spec.models[0].modelCredentials: ',
    'must be absent while requiresAuth is false',
  ],
  [
    of('GatewayInstance', entries(modelEntry('a', { gatewayParams: { model: 'gpt-4o' } }))),
    'spec.models[0].gatewayParams.model: Invalid value: "gpt-4o": ',
  ],
  [
    of('GatewayInstance', entries(modelEntry('gpt-4o'), modelEntry('claude', { identifier: 'gpt-4o' }))),
    'spec.models[1].identifier: Duplicate value: "gpt-4o": is already the identifier of element 0 of the list',
  ],
  [
    of(
      'GatewayInstance',
      entries(
        modelEntry('gpt-4o'),
        modelEntry('b', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'apiKey' } } }),
      ),
    ),
    'spec.models[1].modelCredentials.nameRef: Duplicate value: "creds-gpt-4o": model entry "gpt-4o" already uses this Secret',
  ],
  [
    of(
      'GatewayInstance',
      entries(modelEntry('gpt-4o', { modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apiKey: 'key' } } })),
    ),
    'spec.models[0].modelCredentials.keys.apiKey: Not found: "key": ',
    'it has apiKey',
  ],
  [
    of('GatewayInstance', entries(modelEntry('lost'))),
    'spec.models[0].modelCredentials.nameRef: Not found: "creds-lost": no readable Secret',
  ],
  [
    of(
      'GatewayInstance',
      entries(modelEntry('gpt-4o', { gatewayParams: { model: 'openai/x', inputCostPerMillionTokens: '-1' } })),
    ),
    'spec.models[0].gatewayParams.inputCostPerMillionTokens: Invalid value: "-1": ',
  ],
  [of('GatewayInstance', {}, { name: 'n'.repeat(41) }), 'metadata.name: '],
  [of('GatewayInstance', {}, { name: '2gpt' }), 'metadata.name: Invalid value: "2gpt": '],
  [
    of('GatewayInstance', policies({ name: 'lab', models: ['gpt-4'] })),
    'spec.keyPolicies[0].models[0]: Not found: "gpt-4": must be exactly a modelName',
    'did you mean "gpt-4o"?',
  ],
  [
    of('GatewayInstance', policies({ name: 'lab', perNamespace: { ...calendar, budgetTimeZone: 'Europe/Belrin' } })),
    'spec.keyPolicies[0].perNamespace.budgetTimeZone: Not found: "Europe/Belrin": ',
  ],
  [
    of('GatewayInstance', policies({ name: 'lab', perKey: { maxBudget: '1' } })),
    'spec.keyPolicies[0].perKey.maxBudget: Invalid value: "1": needs budgetDuration',
  ],
  [
    of('VirtualKey', { ...to('limited'), userRef: undefined, teamRef: undefined }),
    'spec.teamRef: Required value: key policy "lab" of instance "platform/limited" requires a Team; add teamRef',
  ],
  [
    of('VirtualKey', { ...to('limited'), userRef: undefined, teamRef: undefined, models: ['claude'] }),
    'spec.models[0]: Unsupported value: "claude": key policy "lab"',
    'choose among "gpt-4o"',
  ],
  [
    of('User', { ...to('limited'), teamRefs: [] }),
    'spec.teamRefs: Required value: key policy "lab" of instance "platform/limited" requires a Team',
  ],
  [of('GatewayInstance', { allowedNamespaces: { from: 'Selector' } }), 'spec.allowedNamespaces.selector: '],
  [of('GatewayInstance', { workload: { type: 'External' } }), 'spec.workload.url: '],
];

/** Secrets that is in the way of keys. */
export const IN_THE_WAY: ReadonlyArray<KubeObject> = [
  secretOf('theirs', {}, 'team-a'),
  secretOf('taken-key', {}, 'team-a'),
];
