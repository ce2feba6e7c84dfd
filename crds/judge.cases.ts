// Which objects are good and which are not, and what is wrong with them?
// Hand-written; judged by `judge` in judge.test.ts and by a real API server in test/crds.world.test.ts, with the same verdict.
import type { KindName } from './kinds.ts';

export interface Case {
  /** Continues "a VirtualKey …". */
  readonly what: string;
  readonly kind: KindName;
  /** Made in the good object of its kind: `spec.models.0.weight` → value; undefined removes. */
  readonly edit: Readonly<Record<string, unknown>>;
  /** Made in the stored object, where the case is an update. */
  readonly stored?: Readonly<Record<string, unknown>>;
  /** Rule and path of every finding; a good object has none. */
  readonly findings: ReadonlyArray<readonly [rule: string, path: string]>;
}

/** The object of a case, and what was stored before where it is an update. */
export function objectsOf(one: Case): { readonly object: Manifest; readonly old: Manifest | undefined } {
  const old = one.stored && edited(good[one.kind], one.stored);
  return { object: edited(good[one.kind], one.edit), old };
}

export interface Manifest {
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

const connectionRef = { instanceRef: { name: 'proxy', namespace: 'ai' } };

/** One good object of each kind, with no field that could be left out. */
export const good: Readonly<Record<KindName, Manifest>> = {
  GatewayInstance: {
    metadata: { name: 'proxy' },
    spec: {
      redisSecretRef: {
        nameRef: 'store',
        keys: { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' },
      },
      databaseSecretRef: {
        nameRef: 'database',
        keys: { hostSecret: 'host', passwordSecret: 'password', usernameSecret: 'username', dbnameSecret: 'dbname' },
      },
      models: [
        {
          modelName: 'gpt-4o',
          identifier: 'gpt-4o-eu',
          requiresAuth: true,
          modelCredentials: { nameRef: 'openai', keys: { apiKey: 'key', apiBase: 'base' } },
          gatewayParams: { model: 'openai/gpt-4o' },
        },
        {
          modelName: 'gpt-4o',
          identifier: 'local',
          requiresAuth: false,
          gatewayParams: { model: 'vllm/meta/llama-3:8b' },
        },
      ],
    },
  },
  VirtualKey: {
    metadata: { name: 'app' },
    spec: { keyAlias: 'app', maxBudget: '10', budgetDuration: '30d', connectionRef },
  },
  User: { metadata: { name: 'ada' }, spec: { userEmail: 'ada@example.com', connectionRef } },
  Team: { metadata: { name: 'search' }, spec: { teamAlias: 'Search', connectionRef } },
};

/** A copy with the edits made. */
function edited(manifest: Manifest, edits: Readonly<Record<string, unknown>>): Manifest {
  return Object.entries(edits).reduce<Manifest>(
    (before, [path, value]) => set(before, path.split('.'), value) as Manifest,
    manifest,
  );
}

function set(target: unknown, [step = '', ...rest]: readonly string[], value: unknown): unknown {
  if (Array.isArray(target)) {
    const index = Number(step);
    const entry = rest.length === 0 ? value : set(target[index], rest, value);
    return index < target.length ? target.with(index, entry) : [...target, entry];
  }
  const { [step]: child, ...others } = (target ?? {}) as Readonly<Record<string, unknown>>;
  if (rest.length > 0) return { ...others, [step]: set(child, rest, value) };
  return value === undefined ? others : { ...others, [step]: value };
}

const accept = (kind: KindName, what: string, edit: Case['edit'] = {}, stored?: Case['edit']): Case => ({
  what,
  kind,
  edit,
  findings: [],
  ...(stored !== undefined && { stored }),
});

const refuse = (kind: KindName, what: string, edit: Case['edit'], ...findings: Case['findings']): Case => ({
  what,
  kind,
  edit,
  findings,
});

const entry = (identifier: string) => ({
  modelName: 'm',
  identifier,
  requiresAuth: false,
  gatewayParams: { model: 'p/m' },
});
const first = 'spec.models.0';
const params = 'spec.models[0].gatewayParams';
const emoji = '🙂'.repeat(256);

const instances: readonly Case[] = [
  accept('GatewayInstance', 'with only what is required'),
  accept('GatewayInstance', 'without entries', { 'spec.models': [] }),
  accept('GatewayInstance', 'that leaves out models', { 'spec.models': undefined }),
  accept('GatewayInstance', 'of 40 characters', { 'metadata.name': `a${'b'.repeat(38)}c` }),
  refuse('GatewayInstance', 'of 41 characters', { 'metadata.name': `a${'b'.repeat(39)}c` }, [
    'InstanceName',
    'metadata.name',
  ]),
  refuse('GatewayInstance', 'whose name begins with a digit', { 'metadata.name': '2gpt' }, [
    'InstanceName',
    'metadata.name',
  ]),
  refuse('GatewayInstance', 'whose name has a dot', { 'metadata.name': 'my.proxy' }, ['InstanceName', 'metadata.name']),
  refuse('GatewayInstance', 'without a spec', { spec: undefined }, ['Required', 'spec']),
  refuse('GatewayInstance', 'whose spec is a list', { spec: [] }, ['WrongType', 'spec']),
  refuse('GatewayInstance', 'without a store', { 'spec.redisSecretRef': undefined }, [
    'Required',
    'spec.redisSecretRef',
  ]),
  refuse('GatewayInstance', 'whose database Secret has no name', { 'spec.databaseSecretRef.nameRef': '' }, [
    'Malformed',
    'spec.databaseSecretRef.nameRef',
  ]),
  refuse('GatewayInstance', 'with a blank entry name', { 'spec.databaseSecretRef.keys.hostSecret': ' ' }, [
    'Malformed',
    'spec.databaseSecretRef.keys.hostSecret',
  ]),
  accept('GatewayInstance', 'whose database port stands in an entry', {
    'spec.databaseSecretRef.keys.portSecret': 'port',
  }),
  refuse('GatewayInstance', 'that repeats an identifier', { 'spec.models.1.identifier': 'gpt-4o-eu' }, [
    'Duplicate',
    'spec.models[1].identifier',
  ]),
  refuse(
    'GatewayInstance',
    'with an entry that requires credentials and names none',
    { [`${first}.modelCredentials`]: undefined },
    ['CredentialsRequired', 'spec.models[0].modelCredentials'],
  ),
  refuse(
    'GatewayInstance',
    'with an entry that names credentials and requires none',
    { [`${first}.requiresAuth`]: false },
    ['CredentialsUnused', 'spec.models[0].modelCredentials'],
  ),
  refuse('GatewayInstance', 'with credentials that map nothing', { [`${first}.modelCredentials.keys`]: {} }, [
    'TooLarge',
    'spec.models[0].modelCredentials.keys',
  ]),
  refuse('GatewayInstance', 'with a credential without a name', { [`${first}.modelCredentials.keys`]: { '': 'key' } }, [
    'EntryName',
    'spec.models[0].modelCredentials.keys',
  ]),
  refuse('GatewayInstance', 'with an entry without requiresAuth', { [`${first}.requiresAuth`]: undefined }, [
    'Required',
    'spec.models[0].requiresAuth',
  ]),
  refuse('GatewayInstance', 'with requiresAuth in quotes', { [`${first}.requiresAuth`]: 'true' }, [
    'WrongType',
    'spec.models[0].requiresAuth',
  ]),
  refuse('GatewayInstance', 'with a model without a provider', { [`${first}.gatewayParams.model`]: 'gpt-4o' }, [
    'Malformed',
    `${params}.model`,
  ]),
  refuse('GatewayInstance', 'with a provider without a model', { [`${first}.gatewayParams.model`]: 'openai/' }, [
    'Malformed',
    `${params}.model`,
  ]),
  refuse(
    'GatewayInstance',
    'with a model without a provider before the slash',
    { [`${first}.gatewayParams.model`]: '/gpt-4o' },
    ['Malformed', `${params}.model`],
  ),
  refuse('GatewayInstance', 'with a blank in a model', { [`${first}.gatewayParams.model`]: 'openai/gpt 4o' }, [
    'Malformed',
    `${params}.model`,
  ]),
  accept('GatewayInstance', 'with slashes in a base model', {
    [`${first}.gatewayParams.model`]: 'openrouter/meta/llama-3.1:free',
  }),
  refuse('GatewayInstance', 'without gatewayParams', { [`${first}.gatewayParams`]: undefined }, [
    'Required',
    'spec.models[0].gatewayParams',
  ]),
  accept('GatewayInstance', 'with everything that gatewayParams takes', {
    [`${first}.gatewayParams`]: {
      model: 'openai/gpt-4o',
      customLLMProvider: 'azure',
      apiBase: 'http://127.0.0.1:8080/v1',
      weight: 3,
      priority: 0,
      rpm: 100,
      tpm: 100_000,
      timeout: '90s',
      maxInputTokens: 128_000,
      maxOutputTokens: 16_384,
      inputCostPerMillionTokens: '2.50',
      outputCostPerMillionTokens: '10',
      cachedInputCostPerMillionTokens: '1.25',
      cacheWriteCostPerMillionTokens: '0',
    },
  }),
  refuse('GatewayInstance', 'with a weight of 0', { [`${first}.gatewayParams.weight`]: 0 }, [
    'TooSmall',
    `${params}.weight`,
  ]),
  refuse('GatewayInstance', 'with half a weight', { [`${first}.gatewayParams.weight`]: 0.5 }, [
    'WrongType',
    `${params}.weight`,
  ]),
  refuse('GatewayInstance', 'with an address that is none', { [`${first}.gatewayParams.apiBase`]: 'ftp://host' }, [
    'Malformed',
    `${params}.apiBase`,
  ]),
  refuse(
    'GatewayInstance',
    'with a price that is a number',
    { [`${first}.gatewayParams.inputCostPerMillionTokens`]: 2.5 },
    ['WrongType', `${params}.inputCostPerMillionTokens`],
  ),
  refuse('GatewayInstance', 'with a negative price', { [`${first}.gatewayParams.outputCostPerMillionTokens`]: '-1' }, [
    'Malformed',
    `${params}.outputCostPerMillionTokens`,
  ]),
  refuse('GatewayInstance', 'with a timeout of no unit', { [`${first}.gatewayParams.timeout`]: '90' }, [
    'Malformed',
    `${params}.timeout`,
  ]),
  refuse('GatewayInstance', 'with a modelName of blanks', { [`${first}.modelName`]: '  ' }, [
    'Malformed',
    'spec.models[0].modelName',
  ]),
  accept('GatewayInstance', 'with any letters in a modelName', { [`${first}.modelName`]: 'Größe "L"/深い \\ x' }),
  accept('GatewayInstance', 'with 512 entries', {
    'spec.models': Array.from({ length: 512 }, (_, index) => entry(`e${index}`)),
  }),
  refuse(
    'GatewayInstance',
    'with 513 entries',
    { 'spec.models': Array.from({ length: 513 }, (_, index) => entry(`e${index}`)) },
    ['TooLarge', 'spec.models'],
  ),
  refuse('GatewayInstance', 'that is External without an address', { 'spec.workload.type': 'External' }, [
    'ExternalNeedsUrl',
    'spec.workload.url',
  ]),
  accept('GatewayInstance', 'that is External with an address', {
    'spec.workload': { type: 'External', url: 'https://gateway.example.com/ai' },
  }),
  refuse(
    'GatewayInstance',
    'whose address has a query',
    { 'spec.workload': { type: 'External', url: 'https://host/?a' } },
    ['Malformed', 'spec.workload.url'],
  ),
  refuse('GatewayInstance', 'of an unknown workload', { 'spec.workload.type': 'Lambda' }, [
    'NotInEnum',
    'spec.workload.type',
  ]),
  refuse('GatewayInstance', 'whose scale is upside down', { 'spec.workload.scale': { min: 3, max: 2 } }, [
    'ScaleMinAboveMax',
    'spec.workload.scale.min',
  ]),
  accept('GatewayInstance', 'whose scale is one number', { 'spec.workload.scale': { min: 2, max: 2 } }),
  accept('GatewayInstance', 'with everything that workload takes', {
    'spec.workload': {
      type: 'Deployment',
      image: 'registry.example.com/gateway@sha256:abc',
      scale: { min: 0, max: 10 },
      resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '0.5Gi' } },
      env: [
        { name: 'LOG_LEVEL', value: '' },
        { name: 'HTTPS_PROXY', valueFrom: { secretKeyRef: { name: 'proxy', key: 'url', optional: true } } },
        { name: 'REGION', valueFrom: { configMapKeyRef: { name: 'cluster', key: 'region' } } },
      ],
      podLabels: { team: 'search', 'example.com/tier': 'A_1.b', empty: '' },
      podAnnotations: { 'example.com/note': 'anything\nat all' },
      serviceAccountName: 'gateway',
    },
  }),
  refuse('GatewayInstance', 'with a bad label', { 'spec.workload.podLabels': { team: 'two words' } }, [
    'Malformed',
    'spec.workload.podLabels.team',
  ]),
  refuse('GatewayInstance', 'with a label of a bad name', { 'spec.workload.podLabels': { 'two words': 'x' } }, [
    'EntryName',
    'spec.workload.podLabels',
  ]),
  refuse('GatewayInstance', 'with a bad quantity', { 'spec.workload.resources.limits': { cpu: 'much' } }, [
    'Malformed',
    'spec.workload.resources.limits.cpu',
  ]),
  refuse(
    'GatewayInstance',
    'that sets a variable twice',
    {
      'spec.workload.env': [
        { name: 'A', value: '1' },
        { name: 'A', value: '2' },
      ],
    },
    ['Duplicate', 'spec.workload.env[1].name'],
  ),
  refuse(
    'GatewayInstance',
    'with two values for a variable',
    { 'spec.workload.env': [{ name: 'A', value: '1', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
    ['OneValue', 'spec.workload.env[0].valueFrom'],
  ),
  refuse('GatewayInstance', 'with a variable from nowhere', { 'spec.workload.env': [{ name: 'A', valueFrom: {} }] }, [
    'OneValueSource',
    'spec.workload.env[0].valueFrom',
  ]),
  accept('GatewayInstance', 'without retries', { 'spec.routing.retries': 0 }),
  refuse('GatewayInstance', 'with negative retries', { 'spec.routing.retries': -1 }, [
    'TooSmall',
    'spec.routing.retries',
  ]),
  refuse('GatewayInstance', 'of an unknown strategy', { 'spec.routing.strategy': 'Random' }, [
    'NotInEnum',
    'spec.routing.strategy',
  ]),
  accept('GatewayInstance', 'with one timeout of its own', { 'spec.routing.timeouts.firstByte': '10s' }),
  refuse('GatewayInstance', 'with a timeout of zero', { 'spec.routing.timeouts.total': '0s' }, [
    'Malformed',
    'spec.routing.timeouts.total',
  ]),
  refuse(
    'GatewayInstance',
    'that selects namespaces without a selector',
    { 'spec.allowedNamespaces.from': 'Selector' },
    ['SelectorRequired', 'spec.allowedNamespaces.selector'],
  ),
  accept('GatewayInstance', 'that selects namespaces', {
    'spec.allowedNamespaces': {
      from: 'Selector',
      selector: {
        matchLabels: { 'kubernetes.io/metadata.name': 'ai' },
        matchExpressions: [
          { key: 'tier', operator: 'In', values: ['a', 'b'] },
          { key: 'off', operator: 'DoesNotExist' },
        ],
      },
    },
  }),
  refuse(
    'GatewayInstance',
    'that selects namespaces by a value in no list',
    {
      'spec.allowedNamespaces': { from: 'Selector', selector: { matchExpressions: [{ key: 'tier', operator: 'In' }] } },
    },
    ['ValuesOfRequirement', 'spec.allowedNamespaces.selector.matchExpressions[0].values'],
  ),
  refuse('GatewayInstance', 'with an unknown keyValueInStatus', { 'spec.keyValueInStatus': 'None' }, [
    'NotInEnum',
    'spec.keyValueInStatus',
  ]),
  accept('GatewayInstance', 'with nulls, which count as absent', {
    'spec.paused': null,
    'spec.workload': null,
    'spec.models.1.modelCredentials': null,
  }),
];

const keys: readonly Case[] = [
  accept('VirtualKey', 'with only what is required'),
  ...['keyAlias', 'maxBudget', 'budgetDuration', 'connectionRef'].map((field) =>
    refuse('VirtualKey', `without ${field}`, { [`spec.${field}`]: undefined }, ['Required', `spec.${field}`]),
  ),
  ...['12', '0.5', '12.50', '0', '1000000000', '1000000000.0', '999999999.999999999', '0.000000001'].map((amount) =>
    accept('VirtualKey', `of $${amount}`, { 'spec.maxBudget': amount }),
  ),
  ...[
    '.5',
    '5.',
    '012',
    '-1',
    '+1',
    '1e3',
    ' 1',
    '1 ',
    '1,5',
    '',
    'ten',
    '0x10',
    '1000000000.000000001',
    '1000000001',
    '0.0000000001',
    '１',
    '1\n',
  ].map((amount) =>
    refuse('VirtualKey', `of $${JSON.stringify(amount)}`, { 'spec.maxBudget': amount }, [
      'Malformed',
      'spec.maxBudget',
    ]),
  ),
  refuse('VirtualKey', 'whose maxBudget is a number', { 'spec.maxBudget': 10 }, ['WrongType', 'spec.maxBudget']),
  ...['1s', '90m', '24h', '30d', '1w', '1mo', '36525d', '876600h', '3155760000s', '52596000m', '5217w', '1217mo'].map(
    (duration) => accept('VirtualKey', `of a window of ${duration}`, { 'spec.budgetDuration': duration }),
  ),
  ...['30', 'd', '0d', '-1d', '1.5d', '1 d', '030d', '1y', '1D', 'P30D', '1d12h', ''].map((duration) =>
    refuse('VirtualKey', `of a window of ${JSON.stringify(duration)}`, { 'spec.budgetDuration': duration }, [
      'Malformed',
      'spec.budgetDuration',
    ]),
  ),
  ...['36526d', '876601h', '3155760001s', '52596001m', '5218w', '1218mo', '99999999999999d'].map((duration) =>
    refuse('VirtualKey', `of a window of ${duration}`, { 'spec.budgetDuration': duration }, [
      'DurationTooLong',
      'spec.budgetDuration',
    ]),
  ),
  ...['a', 'team a/key "1"', 'x'.repeat(256), emoji, 'é', '日本語'].map((alias) =>
    accept('VirtualKey', `called ${alias.slice(0, 20)} (${alias.length})`, { 'spec.keyAlias': alias }),
  ),
  ...['', ' ', ' a', 'a ', 'a\u0000b', 'a\nb', 'tab\t', '\u00a0a', 'a\u2003', 'a\u2028b', '\u200b', 'a\u0085b'].map(
    (alias) =>
      refuse('VirtualKey', `called ${JSON.stringify(alias)}`, { 'spec.keyAlias': alias }, [
        'Malformed',
        'spec.keyAlias',
      ]),
  ),
  refuse('VirtualKey', 'with 257 characters of alias', { 'spec.keyAlias': 'x'.repeat(257) }, [
    'TooLarge',
    'spec.keyAlias',
  ]),
  refuse('VirtualKey', 'with 257 emoji of alias', { 'spec.keyAlias': `${emoji}🙂` }, ['TooLarge', 'spec.keyAlias']),
  accept('VirtualKey', 'with an empty list of models', { 'spec.models': [] }),
  accept('VirtualKey', 'with models', { 'spec.models': ['gpt-4o', 'any other name'] }),
  refuse('VirtualKey', 'that names a model twice', { 'spec.models': ['a', 'b', 'a'] }, ['Duplicate', 'spec.models[2]']),
  refuse('VirtualKey', 'with a blank model', { 'spec.models': ['a', ''] }, ['Malformed', 'spec.models[1]']),
  refuse('VirtualKey', 'whose models are no list', { 'spec.models': 'gpt-4o' }, ['WrongType', 'spec.models']),
  refuse('VirtualKey', 'without an instance name', { 'spec.connectionRef.instanceRef.name': '' }, [
    'Malformed',
    'spec.connectionRef.instanceRef.name',
  ]),
  refuse('VirtualKey', 'without an instance namespace', { 'spec.connectionRef.instanceRef.namespace': undefined }, [
    'Required',
    'spec.connectionRef.instanceRef.namespace',
  ]),
  accept('VirtualKey', 'whose softBudget is its maxBudget', { 'spec.softBudget': '10.0' }),
  refuse('VirtualKey', 'whose softBudget is a nano-dollar above maxBudget', { 'spec.softBudget': '10.000000001' }, [
    'SoftBudgetAboveMaxBudget',
    'spec.softBudget',
  ]),
  refuse(
    'VirtualKey',
    'whose softBudget is above by a digit more',
    { 'spec.softBudget': '10', 'spec.maxBudget': '9.5' },
    ['SoftBudgetAboveMaxBudget', 'spec.softBudget'],
  ),
  refuse('VirtualKey', 'whose softBudget is malformed, said once', { 'spec.softBudget': 'lots' }, [
    'Malformed',
    'spec.softBudget',
  ]),
  accept('VirtualKey', 'that rotates', { 'spec.rotation': { every: '30d', overlap: '24h' } }),
  accept('VirtualKey', 'that rotates every few seconds', { 'spec.rotation': { every: '10s', overlap: '3s' } }),
  accept('VirtualKey', 'that leaves the overlap to admission', { 'spec.rotation': { every: '30d' } }),
  refuse('VirtualKey', 'whose overlap is as long as every', { 'spec.rotation': { every: '1d', overlap: '24h' } }, [
    'OverlapTooLong',
    'spec.rotation.overlap',
  ]),
  refuse('VirtualKey', 'whose overlap is longer by its unit', { 'spec.rotation': { every: '20d', overlap: '1mo' } }, [
    'OverlapTooLong',
    'spec.rotation.overlap',
  ]),
  refuse('VirtualKey', 'that rotates never', { 'spec.rotation': {} }, ['Required', 'spec.rotation.every']),
  accept('VirtualKey', 'with every limit', {
    'spec.rpmLimit': 1,
    'spec.tpmLimit': 1_000_000,
    'spec.maxParallelRequests': 10,
  }),
  ...['rpmLimit', 'tpmLimit', 'maxParallelRequests'].map((field) =>
    refuse('VirtualKey', `with ${field} 0`, { [`spec.${field}`]: 0 }, ['TooSmall', `spec.${field}`]),
  ),
  accept('VirtualKey', 'with all the rest', {
    'spec.duration': '90d',
    'spec.blocked': true,
    'spec.modelMaxBudget': { 'gpt 4o/mini': { maxBudget: '1', budgetDuration: '1d' } },
    'spec.userRef': { name: 'ada' },
    'spec.teamRef': { name: 'search' },
    'spec.tags': ['prod', 'chat bot'],
    'spec.metadata': { 'cost center': '42', note: '' },
    'spec.budgetWindow': 'Calendar',
    'spec.deletionPolicy': 'Retain',
    'spec.secretTemplate': {
      name: 'app-credentials',
      entry: 'token',
      labels: { app: 'chat' },
      annotations: { 'example.com/x': 'y' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what people write in the template
      entries: { OPENAI_API_KEY: '${key}', OPENAI_BASE_URL: '${baseURL}' },
    },
  }),
  refuse('VirtualKey', 'with a model budget of no window', { 'spec.modelMaxBudget': { a: { maxBudget: '1' } } }, [
    'Required',
    'spec.modelMaxBudget.a.budgetDuration',
  ]),
  refuse('VirtualKey', 'whose template overwrites the entry key', { 'spec.secretTemplate.entries': { key: 'x' } }, [
    'KeyEntryIsTaken',
    'spec.secretTemplate.entries',
  ]),
  refuse(
    'VirtualKey',
    'whose template has an entry no Secret can have',
    { 'spec.secretTemplate.entries': { 'a b': 'x' } },
    ['EntryName', 'spec.secretTemplate.entries'],
  ),
  refuse('VirtualKey', 'whose template names no possible Secret', { 'spec.secretTemplate.name': 'My_Secret' }, [
    'Malformed',
    'spec.secretTemplate.name',
  ]),
  refuse('VirtualKey', 'that repeats a tag', { 'spec.tags': ['a', 'a'] }, ['Duplicate', 'spec.tags[1]']),
  refuse('VirtualKey', 'with an unknown window', { 'spec.budgetWindow': 'Monthly' }, [
    'NotInEnum',
    'spec.budgetWindow',
  ]),
  refuse('VirtualKey', 'of a user without a name', { 'spec.userRef': {} }, ['Required', 'spec.userRef.name']),
  accept('VirtualKey', 'whose budget was raised', { 'spec.maxBudget': '20' }, {}),
  {
    ...refuse('VirtualKey', 'whose alias was changed', { 'spec.keyAlias': 'other' }, [
      'KeyAliasIsImmutable',
      'spec.keyAlias',
    ]),
    stored: {},
  },
  {
    ...refuse('VirtualKey', 'that moved to another instance', { 'spec.connectionRef.instanceRef.name': 'other' }, [
      'ConnectionRefIsImmutable',
      'spec.connectionRef',
    ]),
    stored: {},
  },
  {
    ...refuse(
      'VirtualKey',
      'that moved to another namespace',
      { 'spec.connectionRef.instanceRef.namespace': 'other' },
      ['ConnectionRefIsImmutable', 'spec.connectionRef'],
    ),
    stored: {},
  },
];

const usersAndTeams: readonly Case[] = [
  accept('User', 'with only what is required'),
  refuse('User', 'without an e-mail address', { 'spec.userEmail': undefined }, ['Required', 'spec.userEmail']),
  ...['ada', 'ada@', '@example.com', 'a b@example.com', 'a@b@c', ''].map((email) =>
    refuse('User', `of the address ${JSON.stringify(email)}`, { 'spec.userEmail': email }, [
      'Malformed',
      'spec.userEmail',
    ]),
  ),
  refuse(
    'User',
    'whose key has no alias, budget or window',
    { 'spec.autoCreateKey': true },
    ['AutoCreateKeyNeedsField', 'spec.keyAlias'],
    ['AutoCreateKeyNeedsField', 'spec.maxBudget'],
    ['AutoCreateKeyNeedsField', 'spec.budgetDuration'],
  ),
  accept('User', 'with a key', {
    'spec.autoCreateKey': true,
    'spec.keyAlias': 'ada',
    'spec.maxBudget': '10',
    'spec.budgetDuration': '30d',
    'spec.duration': '1mo',
    'spec.userAlias': 'Ada L.',
    'spec.models': ['gpt-4o'],
    'spec.teamRefs': [{ name: 'search' }, { name: 'ads' }],
    'spec.rpmLimit': 60,
    'spec.blocked': false,
  }),
  refuse('User', 'that is in a team twice', { 'spec.teamRefs': [{ name: 'search' }, { name: 'search' }] }, [
    'Duplicate',
    'spec.teamRefs[1].name',
  ]),
  accept(
    'User',
    'whose alias and connection were changed',
    { 'spec.keyAlias': 'b', 'spec.connectionRef.instanceRef.name': 'other' },
    { 'spec.keyAlias': 'a' },
  ),
  accept('Team', 'with only what is required'),
  refuse('Team', 'without an alias', { 'spec.teamAlias': undefined }, ['Required', 'spec.teamAlias']),
  accept('Team', 'with everything', {
    'spec.models': ['gpt-4o'],
    'spec.maxBudget': '100',
    'spec.budgetDuration': '1w',
    'spec.blocked': true,
    'spec.tpmLimit': 5,
    'spec.members': [{ name: 'ada' }, { name: 'bob' }],
  }),
  refuse('Team', 'with a member twice', { 'spec.members': [{ name: 'ada' }, { name: 'ada' }] }, [
    'Duplicate',
    'spec.members[1].name',
  ]),
  refuse('Team', 'with a member without a name', { 'spec.members': [{}] }, ['Required', 'spec.members[0].name']),
];

export const cases: readonly Case[] = [...instances, ...keys, ...usersAndTeams];
