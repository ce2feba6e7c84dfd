// Edits that change each field of each kind, and edits that undo the change.
import type { KindName } from '#crds/kinds/kinds.ts';
import { makeInstance } from '../../../test/reconcile/objects.ts';

export type Spec = Readonly<Record<string, unknown>>;

/** The spec before the edit, the edit, and the edit that undoes it or clears the field. */
export interface Edit {
  readonly before?: Spec;
  readonly change: Spec;
  readonly clear: Spec;
}

const optional = (field: string, value: unknown): Edit => ({ change: { [field]: value }, clear: { [field]: null } });
const back = (field: string, value: unknown, before: unknown): Edit => ({
  change: { [field]: value },
  clear: { [field]: before },
});
const within = (field: string, { before, change, clear }: Edit): Edit => ({
  ...(before === undefined ? {} : { before: { [field]: before } }),
  change: { [field]: change },
  clear: { [field]: clear },
});

const [small, free] = (
  makeInstance().spec as { models: [Spec & { gatewayParams: Spec; modelCredentials: Spec }, Spec] }
).models;
const models = (entry: Spec): Spec => ({ models: [{ ...small, ...entry }, free] });
const entry = (change: Spec): Edit => ({ change: models(change), clear: models({}) });
const params = (change: Spec): Edit => entry({ gatewayParams: { ...small.gatewayParams, ...change } });
const mapping = (
  ref: 'databaseSecretRef' | 'redisSecretRef',
  key: string,
  mapped: string,
  usual: string | null,
): Edit => within(ref, within('keys', { change: { [key]: mapped }, clear: { [key]: usual } }));
/** The two keys come together. */
const clientCertificate: Edit = within(
  'databaseSecretRef',
  within('keys', {
    change: { sslcertSecret: 'cert-2', sslkeySecret: 'key-2' },
    clear: { sslcertSecret: null, sslkeySecret: null },
  }),
);
const timeout = (name: string): Edit => within('routing', within('timeouts', optional(name, '7s')));
const cooldown = (name: string, value: unknown): Edit => within('routing', within('cooldown', optional(name, value)));
const selector = { matchLabels: { team: 'a' } };
const expression = { key: 'team', operator: 'In', values: ['a'] };
const selects = (change: Spec): Edit => ({
  before: { allowedNamespaces: { from: 'Selector', selector } },
  change: { allowedNamespaces: { selector: { matchLabels: null, ...change } } },
  clear: { allowedNamespaces: { selector: { ...selector, matchExpressions: null } } },
});
const second = { instanceRef: { name: 'second', namespace: 'default' } };
const main = { instanceRef: { name: 'main', namespace: 'default' } };
const limits = {
  rpmLimit: optional('rpmLimit', 7),
  tpmLimit: optional('tpmLimit', 7),
  maxParallelRequests: optional('maxParallelRequests', 7),
};
const modelBudget = { maxBudget: '1', budgetDuration: '1d' };
const moves = { 'connectionRef.instanceRef.name': back('connectionRef', second, main) };
/** Edits for the workload type Deployment: for other types these fields have no effect. */
const runs = (field: string, value: unknown): Edit => ({
  // Several processes need a shared counter store.
  before: { workload: { type: 'Deployment' }, redisSecretRef: { nameRef: 'store-2' } },
  change: { workload: { [field]: value } },
  clear: { workload: { [field]: null } },
});
const env = (change: Spec) => runs('env', [{ name: 'SEVEN', ...change }]);
const from = (ref: string, change: Spec = {}) =>
  env({ valueFrom: { [ref]: { name: 'seven', key: 'seven', ...change } } });
const authorities = runs('caConfigMapRef', { name: 'seven', key: 'seven' });
const workload: Readonly<Record<string, Edit>> = {
  'workload.image': runs('image', 'gateway:7'),
  'workload.scale.min': runs('scale', { min: 7, max: 7 }),
  'workload.scale.max': runs('scale', { min: 1, max: 7 }),
  'workload.scale.autoscaler': runs('scale', { min: 1, max: 7, autoscaler: 'None' }),
  'workload.scale.targetRequestsInFlight': runs('scale', { min: 1, max: 7, targetRequestsInFlight: 50 }),
  'workload.resources.requests': runs('resources', { requests: { cpu: '7' } }),
  'workload.resources.limits': runs('resources', { limits: { cpu: '7' } }),
  'workload.env[].name': env({ value: 'seven' }),
  'workload.env[].value': env({ value: '7' }),
  'workload.env[].valueFrom.secretKeyRef.name': from('secretKeyRef'),
  'workload.env[].valueFrom.secretKeyRef.key': from('secretKeyRef', { key: 'eight' }),
  'workload.env[].valueFrom.secretKeyRef.optional': from('secretKeyRef', { optional: true }),
  'workload.env[].valueFrom.configMapKeyRef.name': from('configMapKeyRef'),
  'workload.env[].valueFrom.configMapKeyRef.key': from('configMapKeyRef', { key: 'eight' }),
  'workload.env[].valueFrom.configMapKeyRef.optional': from('configMapKeyRef', { optional: true }),
  'workload.caConfigMapRef.name': authorities,
  'workload.caConfigMapRef.key': authorities,
  'workload.podLabels': runs('podLabels', { seven: '7' }),
  'workload.podAnnotations': runs('podAnnotations', { seven: '7' }),
  'workload.serviceAccountName': runs('serviceAccountName', 'seven'),
};
/** Edits of what a login over TLS needs. */
const logsIn = (...keys: ReadonlyArray<string>): Edit => ({
  before: { workload: { type: 'Deployment' }, redisSecretRef: { nameRef: 'store-3' } },
  change: { redisSecretRef: { keys: Object.fromEntries(keys.map((key) => [`${key}Secret`, key])) } },
  clear: { redisSecretRef: { keys: Object.fromEntries(keys.map((key) => [`${key}Secret`, null])) } },
});
const storeCertificate = logsIn('clientCertificate', 'clientKey');
const httpRoute = { parentRefs: [{ name: 'seven' }], hostnames: ['seven.example.com'] };
const ingress = { host: 'seven.example.com' };
/** Edits of a route, which only a Deployment has. */
const leads = (field: 'httpRoute' | 'ingress', before: Spec, change: Spec): Edit => ({
  before: { workload: { type: 'Deployment' }, redisSecretRef: { nameRef: 'store-2' }, [field]: before },
  change: { [field]: change },
  clear: { [field]: null },
});
const routes: Readonly<Record<string, Edit>> = {
  'httpRoute.parentRefs[].name': leads('httpRoute', httpRoute, { parentRefs: [{ name: 'eight' }] }),
  'httpRoute.parentRefs[].namespace': leads('httpRoute', httpRoute, {
    parentRefs: [{ name: 'seven', namespace: 'eight' }],
  }),
  'httpRoute.parentRefs[].sectionName': leads('httpRoute', httpRoute, {
    parentRefs: [{ name: 'seven', sectionName: 'eight' }],
  }),
  'httpRoute.hostnames': leads('httpRoute', httpRoute, { hostnames: ['eight.example.com'] }),
  'httpRoute.timeouts': leads('httpRoute', httpRoute, { timeouts: 'None' }),
  'httpRoute.url': leads('httpRoute', httpRoute, { url: 'https://eight.example.com' }),
  'ingress.ingressClassName': leads('ingress', ingress, { ingressClassName: 'eight' }),
  'ingress.host': leads('ingress', ingress, { host: 'eight.example.com' }),
  'ingress.tlsSecretName': leads('ingress', ingress, { tlsSecretName: 'eight' }),
  'ingress.annotations': leads('ingress', ingress, { annotations: { eight: '8' } }),
  'ingress.url': leads('ingress', ingress, { url: 'https://eight.example.com' }),
};
const policy = (change: Spec): Edit => optional('keyPolicies', [{ name: 'seven', ...change }]);
const policyBudget = { maxBudget: '7', budgetDuration: '7d' };
const expects = (change: Spec): Edit =>
  policy({ namespaceSelector: { matchExpressions: [{ ...expression, ...change }] }, perNamespace: policyBudget });
const keyPolicies: Readonly<Record<string, Edit | string>> = {
  'keyPolicies[].name': policy({}),
  'keyPolicies[].namespaceSelector.matchLabels': policy({
    namespaceSelector: selector,
    perNamespace: policyBudget,
  }),
  'keyPolicies[].namespaceSelector.matchExpressions[].key': expects({ key: 'x' }),
  'keyPolicies[].namespaceSelector.matchExpressions[].operator': expects({ operator: 'NotIn' }),
  'keyPolicies[].namespaceSelector.matchExpressions[].values': expects({}),
  'keyPolicies[].require': policy({ require: ['teamRef'] }),
  'keyPolicies[].models': policy({ models: ['small'] }),
  'keyPolicies[].teamRef.name': policy({ teamRef: { name: 'research' } }),
  ...Object.fromEntries(
    ['perNamespace', 'perKey'].flatMap((part) =>
      Object.entries({
        maxBudget: policyBudget,
        budgetDuration: { ...policyBudget, budgetDuration: '1d' },
        budgetWindow: { ...policyBudget, budgetWindow: 'Calendar' },
        budgetTimeZone: { ...policyBudget, budgetWindow: 'Calendar', budgetTimeZone: 'Asia/Tokyo' },
        rpmLimit: { rpmLimit: 7, tpmLimit: 7, maxParallelRequests: 7 },
        tpmLimit: 'together with rpmLimit',
        maxParallelRequests: 'together with rpmLimit',
      }).map(([field, fields]) => [
        `keyPolicies[].${part}.${field}`,
        typeof fields === 'string' ? fields : policy({ [part]: fields }),
      ]),
    ),
  ),
};
/** Fields without an edit: the CRD refuses it, or it is part of another edit. */
const NEVER = 'never changes';

/** Edits by kind and field. A text explains why a field has none. */
export const EDITS: Readonly<Record<KindName, Readonly<Record<string, Edit | string>>>> = {
  GatewayInstance: {
    'redisSecretRef.nameRef': within('redisSecretRef', back('nameRef', 'store-2', 'store')),
    'redisSecretRef.keys.hostSecret': mapping('redisSecretRef', 'hostSecret', 'host-2', 'host'),
    'redisSecretRef.keys.portSecret': mapping('redisSecretRef', 'portSecret', 'port-2', 'port'),
    'redisSecretRef.keys.passwordSecret': mapping('redisSecretRef', 'passwordSecret', 'password-2', 'password'),
    'redisSecretRef.keys.usernameSecret': logsIn('username'),
    'redisSecretRef.keys.caSecret': logsIn('ca'),
    'redisSecretRef.keys.clientCertificateSecret': storeCertificate,
    'redisSecretRef.keys.clientKeySecret': storeCertificate,
    'redisSecretRef.keys.sentinelMasterSecret': logsIn('sentinelMaster'),
    'redisSecretRef.keys.sentinelPasswordSecret': logsIn('sentinelMaster', 'sentinelPassword'),
    'databaseSecretRef.nameRef': within('databaseSecretRef', back('nameRef', 'db-2', 'db')),
    'databaseSecretRef.keys.hostSecret': mapping('databaseSecretRef', 'hostSecret', 'host-2', 'host'),
    'databaseSecretRef.keys.portSecret': mapping('databaseSecretRef', 'portSecret', 'port-2', null),
    'databaseSecretRef.keys.passwordSecret': mapping('databaseSecretRef', 'passwordSecret', 'password-2', 'password'),
    'databaseSecretRef.keys.usernameSecret': mapping('databaseSecretRef', 'usernameSecret', 'username-2', 'username'),
    'databaseSecretRef.keys.dbnameSecret': mapping('databaseSecretRef', 'dbnameSecret', 'dbname-2', 'dbname'),
    'databaseSecretRef.keys.sslmodeSecret': mapping('databaseSecretRef', 'sslmodeSecret', 'sslmode-2', null),
    'databaseSecretRef.keys.sslrootcertSecret': mapping('databaseSecretRef', 'sslrootcertSecret', 'system-2', null),
    'databaseSecretRef.keys.sslcertSecret': clientCertificate,
    'databaseSecretRef.keys.sslkeySecret': clientCertificate,
    'models[].modelName': entry({ modelName: 'large' }),
    'models[].identifier': entry({ identifier: 'other' }),
    'models[].requiresAuth': entry({ requiresAuth: false, modelCredentials: undefined }),
    'models[].modelCredentials.nameRef': entry({
      modelCredentials: { ...small.modelCredentials, nameRef: 'openai-2' },
    }),
    'models[].modelCredentials.keys': entry({ modelCredentials: { nameRef: 'openai', keys: { apiKey: 'apiKey' } } }),
    'models[].gatewayParams.model': params({ model: 'openai/other' }),
    'models[].gatewayParams.customLLMProvider': params({ customLLMProvider: 'groq' }),
    'models[].gatewayParams.apiBase': params({ apiBase: 'http://elsewhere.test/v1' }),
    'models[].gatewayParams.weight': params({ weight: 7 }),
    'models[].gatewayParams.priority': params({ priority: 7 }),
    'models[].gatewayParams.rpm': params({ rpm: 7 }),
    'models[].gatewayParams.tpm': params({ tpm: 7 }),
    'models[].gatewayParams.timeout': params({ timeout: '7s' }),
    'models[].gatewayParams.maxInputTokens': params({ maxInputTokens: 7 }),
    'models[].gatewayParams.maxOutputTokens': params({ maxOutputTokens: 7 }),
    'models[].gatewayParams.inputCostPerMillionTokens': params({ inputCostPerMillionTokens: '7' }),
    'models[].gatewayParams.outputCostPerMillionTokens': params({ outputCostPerMillionTokens: '7' }),
    'models[].gatewayParams.cachedInputCostPerMillionTokens': params({ cachedInputCostPerMillionTokens: '7' }),
    'models[].gatewayParams.cacheWriteCostPerMillionTokens': params({ cacheWriteCostPerMillionTokens: '7' }),
    'models[].gatewayParams.cacheWriteLongCostPerMillionTokens': params({ cacheWriteLongCostPerMillionTokens: '9' }),
    'models[].gatewayParams.toolCosts.webSearch': params({ toolCosts: { webSearch: '7' } }),
    'workload.type': within('workload', {
      change: { type: 'External', url: 'http://elsewhere.test' },
      clear: { type: null, url: null },
    }),
    'workload.url': within('workload', {
      before: { type: 'External', url: 'http://elsewhere.test' },
      change: { url: 'http://moved.test' },
      clear: { url: 'http://elsewhere.test' },
    }),
    ...workload,
    ...routes,
    'routing.strategy': within('routing', optional('strategy', 'LeastBusy')),
    'routing.retries': within('routing', optional('retries', 7)),
    'routing.timeouts.connect': timeout('connect'),
    'routing.timeouts.firstByte': timeout('firstByte'),
    'routing.timeouts.idle': timeout('idle'),
    'routing.timeouts.total': timeout('total'),
    'routing.cooldown.failures': cooldown('failures', 7),
    'routing.cooldown.within': cooldown('within', '7s'),
    'routing.cooldown.duration': cooldown('duration', '7s'),
    'allowedNamespaces.from': back(
      'allowedNamespaces',
      { from: 'Selector', selector },
      { from: 'All', selector: null },
    ),
    'allowedNamespaces.selector.matchLabels': selects({ matchLabels: { team: 'b' } }),
    'allowedNamespaces.selector.matchExpressions[].key': selects({ matchExpressions: [{ ...expression, key: 'x' }] }),
    'allowedNamespaces.selector.matchExpressions[].operator': selects({
      matchExpressions: [{ ...expression, operator: 'NotIn' }],
    }),
    'allowedNamespaces.selector.matchExpressions[].values': selects({
      matchExpressions: [{ ...expression, values: ['b'] }],
    }),
    ...keyPolicies,
    keyValueInStatus: optional('keyValueInStatus', 'Redacted'),
    storeResponses: optional('storeResponses', true),
    blockedMessage: optional('blockedMessage', 'Ask in #ai-platform.'),
    paused: optional('paused', true),
  },
  VirtualKey: {
    keyAlias: NEVER,
    'connectionRef.instanceRef.name': NEVER,
    'connectionRef.instanceRef.namespace': NEVER,
    models: optional('models', ['small']),
    maxBudget: back('maxBudget', '7', '10'),
    budgetDuration: back('budgetDuration', '7d', '30d'),
    duration: optional('duration', '7d'),
    softBudget: optional('softBudget', '7'),
    blocked: optional('blocked', true),
    ...limits,
    'budgets[].maxBudget': optional('budgets', [modelBudget]),
    'budgets[].budgetDuration': optional('budgets', [{ ...modelBudget, budgetDuration: '7d' }]),
    'modelMaxBudget{}.maxBudget': optional('modelMaxBudget', { small: modelBudget }),
    'modelMaxBudget{}.budgetDuration': {
      before: { modelMaxBudget: { small: modelBudget } },
      change: { modelMaxBudget: { small: { budgetDuration: '2d' } } },
      clear: { modelMaxBudget: null },
    },
    'userRef.name': optional('userRef', { name: 'bob' }),
    'teamRef.name': optional('teamRef', { name: 'research' }),
    tags: optional('tags', ['seven']),
    metadata: optional('metadata', { seven: '7' }),
    budgetWindow: optional('budgetWindow', 'Calendar'),
    budgetTimeZone: {
      before: { budgetWindow: 'Calendar' },
      change: { budgetTimeZone: 'Asia/Tokyo' },
      clear: { budgetTimeZone: null },
    },
    'secretTemplate.name': within('secretTemplate', optional('name', 'elsewhere')),
    'secretTemplate.labels': within('secretTemplate', optional('labels', { seven: '7' })),
    'secretTemplate.annotations': within('secretTemplate', optional('annotations', { seven: '7' })),
    'secretTemplate.data': within('secretTemplate', optional('data', { BASE: `\${baseURL}` })),
    'rotation.every': optional('rotation', { every: '7d' }),
    'rotation.overlap': {
      before: { rotation: { every: '7d' } },
      change: { rotation: { overlap: '7m' } },
      clear: { rotation: { overlap: null } },
    },
    deletionPolicy: optional('deletionPolicy', 'Retain'),
  },
  User: {
    ...moves,
    'connectionRef.instanceRef.namespace': NEVER,
    userEmail: back('userEmail', 'alicia@example.com', 'alice@example.com'),
    userAlias: optional('userAlias', 'Alicia'),
    autoCreateKey: back('autoCreateKey', false, true),
    keyAlias: back('keyAlias', 'alicia-key', 'alice-key'),
    models: optional('models', ['small']),
    maxBudget: back('maxBudget', '7', '25'),
    budgetDuration: back('budgetDuration', '7d', '30d'),
    budgetWindow: optional('budgetWindow', 'Calendar'),
    budgetTimeZone: {
      before: { budgetWindow: 'Calendar' },
      change: { budgetTimeZone: 'Asia/Tokyo' },
      clear: { budgetTimeZone: null },
    },
    duration: optional('duration', '7d'),
    blocked: optional('blocked', true),
    ...limits,
    'teamRefs[].name': optional('teamRefs', [{ name: 'research' }]),
  },
  Team: {
    ...moves,
    'connectionRef.instanceRef.namespace': NEVER,
    teamAlias: back('teamAlias', 'search', 'research'),
    models: optional('models', ['small']),
    maxBudget: optional('maxBudget', '7'),
    budgetDuration: optional('budgetDuration', '7d'),
    budgetWindow: { ...optional('budgetWindow', 'Calendar'), before: { maxBudget: '7', budgetDuration: '1mo' } },
    budgetTimeZone: {
      before: { maxBudget: '7', budgetDuration: '1mo', budgetWindow: 'Calendar' },
      change: { budgetTimeZone: 'Asia/Tokyo' },
      clear: { budgetTimeZone: null },
    },
    blocked: optional('blocked', true),
    ...limits,
    'members[].name': optional('members', [{ name: 'alice' }]),
  },
};
