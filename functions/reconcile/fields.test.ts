// Is every field of every kind carried by the writes that a person would expect when it is changed and when it is cleared, and by none after that?
// The answers stand in golden/fields.golden.txt, one line an edit: read the difference before committing it.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import { notYetActedOn } from '#crds/acted-on.ts';
import { fieldsOf } from '#crds/fields.ts';
import { gatewayInstances, type Kind, type KindName, kinds, teams, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../test/reconcile/objects.ts';

type Spec = Readonly<Record<string, unknown>>;

/** What the object says before, then the edit, then the edit that takes it back or away. */
interface Edit {
  readonly before?: Spec;
  readonly change: Spec;
  readonly clear: Spec;
}

const EDITED: Readonly<Record<KindName, readonly [kind: Resource, name: string]>> = {
  GatewayInstance: [gatewayInstances, 'main'],
  VirtualKey: [virtualKeys, 'chat'],
  User: [users, 'alice'],
  Team: [teams, 'research'],
};

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
/** Of a Deployment: elsewhere there is nothing that they are about. */
const runs = (field: string, value: unknown): Edit => ({
  // Several processes need a store that they share.
  before: { workload: { type: 'Deployment' }, redisSecretRef: { nameRef: 'store-2' } },
  change: { workload: { [field]: value } },
  clear: { workload: { [field]: null } },
});
const env = (change: Spec) => runs('env', [{ name: 'SEVEN', ...change }]);
const from = (ref: string, change: Spec = {}) =>
  env({ valueFrom: { [ref]: { name: 'seven', key: 'seven', ...change } } });
const workload: Readonly<Record<string, Edit>> = {
  'workload.image': runs('image', 'gateway:7'),
  'workload.scale.min': runs('scale', { min: 7, max: 7 }),
  'workload.scale.max': runs('scale', { min: 1, max: 7 }),
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
  'workload.podLabels': runs('podLabels', { seven: '7' }),
  'workload.podAnnotations': runs('podAnnotations', { seven: '7' }),
  'workload.serviceAccountName': runs('serviceAccountName', 'seven'),
};
/** No edit: the CRD refuses it, or it comes with another. */
const NEVER = 'never changes';

const EDITS: Readonly<Record<KindName, Readonly<Record<string, Edit | string>>>> = {
  GatewayInstance: {
    'redisSecretRef.nameRef': within('redisSecretRef', back('nameRef', 'store-2', 'store')),
    'redisSecretRef.keys.hostSecret': mapping('redisSecretRef', 'hostSecret', 'host-2', 'host'),
    'redisSecretRef.keys.portSecret': mapping('redisSecretRef', 'portSecret', 'port-2', 'port'),
    'redisSecretRef.keys.passwordSecret': mapping('redisSecretRef', 'passwordSecret', 'password-2', 'password'),
    'databaseSecretRef.nameRef': within('databaseSecretRef', back('nameRef', 'db-2', 'db')),
    'databaseSecretRef.keys.hostSecret': mapping('databaseSecretRef', 'hostSecret', 'host-2', 'host'),
    'databaseSecretRef.keys.portSecret': mapping('databaseSecretRef', 'portSecret', 'port-2', null),
    'databaseSecretRef.keys.passwordSecret': mapping('databaseSecretRef', 'passwordSecret', 'password-2', 'password'),
    'databaseSecretRef.keys.usernameSecret': mapping('databaseSecretRef', 'usernameSecret', 'username-2', 'username'),
    'databaseSecretRef.keys.dbnameSecret': mapping('databaseSecretRef', 'dbnameSecret', 'dbname-2', 'dbname'),
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
    keyValueInStatus: optional('keyValueInStatus', 'Redacted'),
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
    'secretTemplate.name': within('secretTemplate', optional('name', 'elsewhere')),
    'secretTemplate.entry': within('secretTemplate', optional('entry', 'TOKEN')),
    'secretTemplate.labels': within('secretTemplate', optional('labels', { seven: '7' })),
    'secretTemplate.annotations': within('secretTemplate', optional('annotations', { seven: '7' })),
    'secretTemplate.entries': within('secretTemplate', optional('entries', { BASE: `\${baseURL}` })),
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
    blocked: optional('blocked', true),
    ...limits,
    'members[].name': optional('members', [{ name: 'alice' }]),
  },
};

/** Fields that hold no other fields. */
function leavesOf(kind: Kind): readonly string[] {
  const paths = fieldsOf(kind, 'spec').map(({ path }) => path.slice('spec.'.length));
  const holds = (path: string, other: string) =>
    other.startsWith(path) && /^(\[\]|\{\})?\./.test(other.slice(path.length));
  return paths.filter((path) => !paths.some((other) => holds(path, other)));
}

const isActedOn = (kind: KindName, path: string) =>
  !notYetActedOn[kind].some((entry) => path === entry || path.startsWith(`${entry}.`) || path.startsWith(`${entry}[`));

test('each field that is acted on is edited here', () => {
  for (const kind of kinds) {
    const leaves = leavesOf(kind);
    const acted = leaves.filter((path) => isActedOn(kind.kind, path));
    expect(
      acted.filter((path) => !Object.hasOwn(EDITS[kind.kind], path)),
      `${kind.kind}: edit these here`,
    ).toEqual([]);
    expect(
      Object.keys(EDITS[kind.kind]).filter((path) => !leaves.includes(path)),
      'no fields',
    ).toEqual([]);
  }
});

const namespace: KubeObject = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'default', labels: { team: 'a' } },
};
const database = { host: 'db', username: 'gateway', password: 'x', dbname: 'gateway' };
const store = { host: 'memory', port: '6379', password: '' };
const twice = (data: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(data).flatMap(([name, value]) => [
      [name, value],
      [`${name}-2`, value],
    ]),
  );

async function converged(): Promise<Bed> {
  const bed = createBed();
  const upstream = { apiKey: 'sk-upstream', apiBase: 'http://upstream.test/v1' };
  await bed.apply(namespace, ...makeSecrets());
  await bed.apply(
    makeSecret('db', { ...twice(database), 'host-2': 'moved', 'port-2': '7777', 'dbname-2': 'elsewhere' }),
    makeSecret('db-2', { ...database, host: 'moved' }),
    makeSecret('store', twice(store)),
    makeSecret('store-2', { ...store, host: 'redis.test' }),
    makeSecret('openai-2', upstream),
    makeInstance(),
    makeInstance({}, 'second'),
    makeTeam(),
    makeUser(),
    makeUser({ autoCreateKey: false, userEmail: 'bob@example.com' }, 'bob'),
    makeKey(),
  );
  await bed.sweep();
  return bed;
}

/** What tells and what tidies up is not what carries. */
const BESIDE = ['RecordEvent', 'DeleteSnapshot'];
const write = (actions: object) =>
  Object.entries(actions)
    .filter(([action]) => !BESIDE.includes(action))
    .map(([action, count]) => `${action} ${count}`)
    .join(', ') || 'nothing';

test('what carries each edit is as it was when somebody last looked, and a second run has nothing left to carry', async () => {
  const lines: string[] = [];
  for (const [name, edits] of Object.entries(EDITS)) {
    const [kind, object] = EDITED[name as KindName];
    for (const [path, edit] of Object.entries(edits)) {
      if (typeof edit === 'string') {
        lines.push(`${name} ${path}: ${edit}`);
        continue;
      }
      const bed = await converged();
      const carry = async (spec: Spec) => {
        await bed.edit(kind, object, { spec });
        bed.clock.pass(1000);
        const first = await bed.sweep();
        expect({ path, failed: first.failed }).toEqual({ path, failed: {} });
        const writes = bed.writes();
        const next = await bed.sweep();
        expect({ path, spec, again: next.actions }).toEqual({ path, spec, again: {} });
        expect(bed.writes()).toBe(writes);
        return write(first.actions);
      };
      if (edit.before !== undefined) await carry(edit.before);
      lines.push(`${name} ${path}: ${await carry(edit.change)}; cleared: ${await carry(edit.clear)}`);
    }
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(join(import.meta.dirname, 'golden/fields.golden.txt'));
});
