// What gets in while the admission function is down and its failure policy says `Ignore`, and what does reconcile say
// of it?
import type { KubeObject } from '#core/ports/cluster.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import { to } from './around.ts';
import { GOOD, modelEntry, objectOf } from './fixtures.ts';

type Json = Record<string, unknown>;

export interface BypassResult {
  readonly what: string;
  readonly object: KubeObject;
  /** The rule by which the function refuses it: the reason of the condition too. */
  readonly rule: string;
  /** The condition, False, in which reconcile says it; `SpecValid`: only CRDs of before let it in. */
  readonly condition: string;
}

let count = 0;
function of(kind: KindName, change: Json, metadata: Json = {}): KubeObject {
  count += 1;
  const own: Record<KindName, Json> = {
    GatewayInstance: {},
    VirtualKey: { keyAlias: `slipped-${count}`, userRef: undefined, teamRef: undefined },
    User: {
      userEmail: `slipped-${count}@example.com`,
      keyAlias: `slipped-${count}`,
      autoCreateKey: false,
      teamRefs: [],
    },
    Team: { teamAlias: `slipped-${count}`, members: [] },
  };
  const name = `slipped-${count}`;
  return objectOf(kind, { ...GOOD[kind], ...own[kind], ...change }, { name, ...metadata });
}

const entry = (identifier: string, nameRef: string, more: Json = {}) =>
  modelEntry('gpt-4o', { identifier, modelCredentials: { nameRef, keys: { apiKey: 'apiKey' } }, ...more });
const { databaseSecretRef, redisSecretRef } = GOOD.GatewayInstance;

export const BYPASSED: ReadonlyArray<BypassResult> = [
  {
    what: 'a key for a model that is not served',
    object: of('VirtualKey', { models: ['gpt-4'] }),
    rule: 'ModelNotServed',
    condition: 'Ready',
  },
  {
    what: 'a key of which one model of two is not served',
    object: of('VirtualKey', { models: ['gpt-4o', 'gpt-4'] }),
    rule: 'ModelNotServed',
    condition: 'ModelsReady',
  },
  {
    what: 'a key whose alias another key of the namespace has',
    object: of('VirtualKey', { keyAlias: GOOD.VirtualKey.keyAlias }),
    rule: 'AliasTaken',
    condition: 'Ready',
  },
  {
    what: 'a key whose alias a key of another namespace has',
    object: of('VirtualKey', { keyAlias: GOOD.VirtualKey.keyAlias }, { namespace: 'team-b' }),
    rule: 'AliasTaken',
    condition: 'Ready',
  },
  {
    what: 'a key of an instance that is not there',
    object: of('VirtualKey', to('mian')),
    rule: 'InstanceNotFound',
    condition: 'Ready',
  },
  {
    what: 'a key of an instance that does not allow its namespace',
    object: of('VirtualKey', to('closed')),
    rule: 'InstanceNotFound',
    condition: 'Ready',
  },
  {
    what: 'a key of an instance that is being deleted',
    object: of('VirtualKey', to('leaving')),
    rule: 'InstanceNotFound',
    condition: 'Ready',
  },
  {
    what: 'a key of a user who is being deleted',
    object: of('VirtualKey', { userRef: { name: 'leaving' } }),
    rule: 'UserNotFound',
    condition: 'Ready',
  },
  {
    what: 'a key with four mistakes',
    object: of('VirtualKey', {
      models: ['gpt-4', 'llama'],
      userRef: { name: 'nobody' },
      teamRef: { name: 'elsewhere' },
    }),
    rule: 'UserNotFound',
    condition: 'Ready',
  },
  {
    what: 'a user of an instance that is not there',
    object: of('User', to('mian')),
    rule: 'InstanceNotFound',
    condition: 'Ready',
  },
  {
    what: 'a team of an instance that does not allow its namespace',
    object: of('Team', to('closed')),
    rule: 'InstanceNotFound',
    condition: 'Ready',
  },
  {
    what: 'a key of a user who is not there',
    object: of('VirtualKey', { userRef: { name: 'nobody' } }),
    rule: 'UserNotFound',
    condition: 'Ready',
  },
  {
    what: 'a key of a user of another instance',
    object: of('VirtualKey', { userRef: { name: 'elsewhere' } }),
    rule: 'UserOfOtherInstance',
    condition: 'Ready',
  },
  {
    what: 'a key of a team that is not there',
    object: of('VirtualKey', { teamRef: { name: 'nobody' } }),
    rule: 'TeamNotFound',
    condition: 'Ready',
  },
  {
    what: 'a key of a team of another instance',
    object: of('VirtualKey', { teamRef: { name: 'elsewhere' } }),
    rule: 'TeamOfOtherInstance',
    condition: 'Ready',
  },
  {
    what: "a key that would write into somebody else's Secret",
    object: of('VirtualKey', { secretTemplate: { name: 'theirs' } }),
    rule: 'SecretConflict',
    condition: 'Ready',
  },
  {
    what: 'a user whose e-mail address another user has',
    object: of('User', { userEmail: GOOD.User.userEmail }),
    rule: 'AliasTaken',
    condition: 'Ready',
  },
  {
    what: 'a user whose key would have the alias of another key',
    object: of('User', { autoCreateKey: true, keyAlias: GOOD.VirtualKey.keyAlias }),
    rule: 'AliasTaken',
    condition: 'Ready',
  },
  {
    what: 'a user of a team that is not there',
    object: of('User', { teamRefs: [{ name: 'nobody' }] }),
    rule: 'TeamNotFound',
    condition: 'Ready',
  },
  {
    what: 'a user of two teams of which one is of another instance and one is not there',
    object: of('User', { teamRefs: [{ name: 'elsewhere' }, { name: 'nobody' }] }),
    rule: 'TeamOfOtherInstance',
    condition: 'Ready',
  },
  {
    what: 'a user of which one model of two is not served',
    object: of('User', { models: ['gpt-4o', 'gpt-4'] }),
    rule: 'ModelNotServed',
    condition: 'ModelsReady',
  },
  {
    what: 'a user for a model that is not served',
    object: of('User', { models: ['gpt-4'] }),
    rule: 'ModelNotServed',
    condition: 'Ready',
  },
  {
    what: 'a team whose alias another team has',
    object: of('Team', { teamAlias: GOOD.Team.teamAlias }),
    rule: 'AliasTaken',
    condition: 'Ready',
  },
  {
    what: 'a team for a model that is not served',
    object: of('Team', { models: ['gpt-4'] }),
    rule: 'ModelNotServed',
    condition: 'Ready',
  },
  {
    what: 'an instance without its database Secret',
    object: of('GatewayInstance', { databaseSecretRef: { ...databaseSecretRef, nameRef: 'missing' } }),
    rule: 'SecretNotFound',
    condition: 'DatabaseReady',
  },
  {
    what: 'an instance whose database Secret lacks an entry',
    object: of('GatewayInstance', {
      databaseSecretRef: { ...databaseSecretRef, keys: { ...databaseSecretRef.keys, hostSecret: 'missing' } },
    }),
    rule: 'SecretKeyMissing',
    condition: 'DatabaseReady',
  },
  {
    what: 'an instance without its store Secret',
    object: of('GatewayInstance', { redisSecretRef: { ...redisSecretRef, nameRef: 'missing' } }),
    rule: 'SecretNotFound',
    condition: 'StoreReady',
  },
  {
    what: 'an instance whose store Secret lacks two entries',
    object: of('GatewayInstance', {
      redisSecretRef: { ...redisSecretRef, keys: { ...redisSecretRef.keys, portSecret: 'p', passwordSecret: 'q' } },
    }),
    rule: 'SecretKeyMissing',
    condition: 'StoreReady',
  },
  {
    what: 'an instance of which one entry has no Secret',
    object: of('GatewayInstance', { models: [entry('one', 'creds-gpt-4o'), entry('two', 'missing')] }),
    rule: 'SecretNotFound',
    condition: 'ModelsReady',
  },
  {
    what: 'an instance of which one entry maps an entry that its Secret lacks',
    object: of('GatewayInstance', {
      models: [
        entry('one', 'creds-gpt-4o'),
        entry('two', 'x', { modelCredentials: { nameRef: 'creds-claude', keys: { apiKey: 'missing' } } }),
      ],
    }),
    rule: 'SecretKeyMissing',
    condition: 'ModelsReady',
  },
  {
    what: 'an instance of which two entries share a Secret',
    object: of('GatewayInstance', { models: [entry('one', 'creds-gpt-4o'), entry('two', 'creds-gpt-4o')] }),
    rule: 'SharedCredentials',
    condition: 'ModelsReady',
  },
  {
    what: 'a key whose softBudget is above its maxBudget',
    object: of('VirtualKey', { softBudget: '11' }),
    rule: 'SoftBudgetAboveMaxBudget',
    condition: 'SpecValid',
  },
  {
    what: 'a key with a budget that is none, and two more mistakes',
    object: of('VirtualKey', { maxBudget: 'ten', duration: '99999999d', metadata: { '': 'x' } }),
    rule: 'Malformed',
    condition: 'SpecValid',
  },
  {
    what: 'a user without what a key needs',
    object: of('User', { autoCreateKey: true, keyAlias: undefined, maxBudget: undefined }),
    rule: 'AutoCreateKeyNeedsField',
    condition: 'SpecValid',
  },
  {
    what: 'a team that is called nothing',
    object: of('Team', { teamAlias: ' ' }),
    rule: 'Malformed',
    condition: 'SpecValid',
  },
  {
    what: 'an instance of which one entry lacks the credentials that it requires',
    object: of('GatewayInstance', {
      models: [entry('one', 'creds-gpt-4o'), entry('two', '', { modelCredentials: undefined })],
    }),
    rule: 'CredentialsRequired',
    condition: 'SpecValid',
  },
  {
    what: 'an instance with one identifier twice',
    object: of('GatewayInstance', { models: [entry('one', 'creds-gpt-4o'), entry('one', 'creds-claude')] }),
    rule: 'Duplicate',
    condition: 'SpecValid',
  },
];
