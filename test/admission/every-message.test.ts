// Does every sentence that a rule can say name the place, the value, what is wrong, and what to do?
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { type Finding, toSentence } from '#core/rules/finding.ts';
import { namespaceNotAllowed } from '#core/rules/instance.ts';
import { gatewayInstances, kindOf, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { cases } from '#crds/test/cases/all.ts';
import { objectsOf } from '#crds/test/cases/case.ts';
import { validate } from '#crds/validation/validate.ts';
import { CHAINS } from '../../functions/admission/chain.ts';
import { readReview } from '../../functions/admission/review.ts';
import { readSubject } from '../../functions/admission/subject.ts';
import { LEAVING } from './around.ts';
import { BYPASSED } from './bypassed.ts';
import { ADA, createWorld, depsOf, GOOD, modelEntry, objectOf, requestOf, secretOf, type World } from './fixtures.ts';

type FindingText = Pick<Finding, 'rule' | 'path' | 'value' | 'message'>;

/** Of an object in the world, everything that any check says of it, warnings too. */
async function findingsOf(
  world: World,
  object: KubeObject,
  more: Record<string, unknown> = {},
): Promise<readonly FindingText[]> {
  const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestOf(object, more) };
  const read = readReview(new TextEncoder().encode(JSON.stringify(review)));
  if (!read.ok) throw new Error(read.failure.problem);
  const found = readSubject(read.value, new Set());
  if (found.subject === undefined) throw new Error(JSON.stringify(found));
  const { signal } = new AbortController();
  const { kind, object: draft, old } = found.subject;
  return CHAINS[kind.kind](draft, old, {
    ...depsOf(world.cluster),
    user: ADA,
    signal,
    secretPrefixes: ['example.com'],
  });
}

const key = (change: object, metadata = {}) => objectOf('VirtualKey', { ...GOOD.VirtualKey, ...change }, metadata);
const entry = (more: object) =>
  objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models: [modelEntry('gpt-4o', { ...more })] });

/** An instance with a key policy. */
const LIMITED = { instanceRef: { name: 'limited', namespace: 'platform' } };
const POLICY = {
  name: 'lab',
  require: ['teamRef', 'userRef'],
  models: ['gpt-4o'],
  perKey: { maxBudget: '1', budgetDuration: '30d' },
};

/** What the table of mistakes that slip in does not have: warnings, and annotations. */
const MORE: ReadonlyArray<readonly [object: KubeObject, more?: Record<string, unknown>]> = [
  [key({ secretTemplate: { labels: { 'argocd.argoproj.io/secret-type': 'cluster' } } })],
  [objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models: [] }), { oldObject: objectOf('GatewayInstance') }],
  [entry({ gatewayParams: { model: 'openai/gpt-4o', inputCostPerMillionTokens: '1' } })],
  [entry({ gatewayParams: { model: 'nobody/mine' } })],
  [entry({ gatewayParams: { model: 'vllm/mine' } })],
  [entry({ modelCredentials: { nameRef: 'creds-gpt-4o', keys: { apikey: 'apiKey', zzz: 'apiKey' } } })],
  [
    objectOf('GatewayInstance', {
      ...GOOD.GatewayInstance,
      databaseSecretRef: { ...GOOD.GatewayInstance.databaseSecretRef, nameRef: 'odd' },
    }),
    { oldObject: objectOf('GatewayInstance') },
  ],
  [
    objectOf('GatewayInstance', {
      ...GOOD.GatewayInstance,
      keyPolicies: [
        { name: 'a', models: ['gpt-4'], teamRef: { name: 'nobody' } },
        { name: 'b', perKey: { maxBudget: '0', budgetDuration: '1d', budgetTimeZone: 'Europe/Belrin' } },
      ],
    }),
  ],
  [key({ connectionRef: LIMITED, models: ['claude'], teamRef: undefined, userRef: undefined })],
  [objectOf('User', { ...GOOD.User, connectionRef: LIMITED, teamRefs: [], keyAlias: 'free' }, { name: 'free' })],
  [key({ maxBudget: '5' }), { oldObject: { ...key({}), status: { currentSpend: '7' } } }],
  [key({ maxBudget: '0' })],
  [key({ budgetTimeZone: 'Europe/Belrin' })],
  [objectOf('Team', { ...GOOD.Team, budgetWindow: 'Calendar', budgetDuration: undefined })],
  [
    key({
      budgets: [
        { maxBudget: '100000', budgetDuration: '1m' },
        { maxBudget: '1', budgetDuration: '60s' },
      ],
    }),
  ],
  [key({ modelMaxBudget: { 'gpt-4': { maxBudget: '1', budgetDuration: '1d' } } })],
  [key({}, { annotations: { 'auth.gateway-operator.dev/rotate': ' ' } })],
  ...(['adopt-ledger', 'deletion-share'] as const).map((name): readonly [KubeObject] => [
    objectOf('GatewayInstance', GOOD.GatewayInstance, {
      annotations: { [`instance.gateway-operator.dev/${name}`]: ' ' },
    }),
  ]),
  [objectOf('User', GOOD.User, { name: 'taken' })],
  [objectOf('User', { ...GOOD.User, keyAlias: 'new' }), { oldObject: objectOf('User') }],
  [objectOf('User', { ...GOOD.User, maxBudget: '0' })],
  [objectOf('Team', { ...GOOD.Team, maxBudget: '0', members: [{ name: 'nobody' }, { name: 'elsewhere' }] })],
];

async function everything(): Promise<readonly FindingText[]> {
  const world = await createWorld();
  const elsewhere = { connectionRef: { instanceRef: { name: 'other', namespace: 'platform' } } };
  await world.put(virtualKeys, objectOf('VirtualKey', { ...GOOD.VirtualKey, models: ['claude'] }, { name: 'there' }));
  await world.put(virtualKeys, objectOf('VirtualKey', { ...GOOD.VirtualKey, keyAlias: 'x' }, { name: 'taken' }));
  await world.put(
    users,
    objectOf('User', { ...GOOD.User, ...elsewhere, userEmail: 'e@example.com' }, { name: 'elsewhere' }),
  );
  await world.put(
    teams,
    objectOf('Team', { ...GOOD.Team, ...elsewhere, teamAlias: 'e', members: [] }, { name: 'elsewhere' }),
  );
  await world.put(
    gatewayInstances,
    objectOf('GatewayInstance', { ...GOOD.GatewayInstance, keyPolicies: [POLICY] }, { name: 'limited' }),
  );
  for (const object of LEAVING) {
    const resource = object.kind === 'User' ? users : gatewayInstances;
    await world.put(resource, object);
    await world.drop(resource, object.metadata.namespace ?? '', object.metadata.name);
  }
  await world.put(RESOURCES.secrets, secretOf('odd', { host: 'postgres://x', user: 'u', password: '', name: 'n' }));
  await world.put(RESOURCES.secrets, secretOf('theirs', { key: 'x' }, 'team-a'));
  const inWorld: FindingText[] = [];
  for (const { object } of BYPASSED) inWorld.push(...(await findingsOf(world, object)));
  for (const [object, more] of MORE) inWorld.push(...(await findingsOf(world, object, more)));
  const alone = cases.flatMap((one) => {
    const { object, old } = objectsOf(one);
    return validate(kindOf[one.kind], object, old).violations;
  });
  // Told by reconcile only.
  const revoked = namespaceNotAllowed({ namespace: 'platform', name: 'main' }, 'team-a');
  return [...inWorld, ...alone, revoked];
}

/** The names of all rules that the code knows: `rule: 'X'` of a finding, `id: 'X'` of a rule of a schema. */
function rulesInCode(): readonly string[] {
  const root = join(import.meta.dirname, '../..');
  const folders = ['crds', 'functions/core/rules', 'functions/admission/checks'];
  const files = folders.flatMap((folder) => readdirSync(join(root, folder)).map((file) => join(root, folder, file)));
  const texts = files
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => readFileSync(file, 'utf8'));
  const found = texts.flatMap((text) =>
    [...text.matchAll(/\b(?:rule|id): ['`]([^'`]+)['`]/g)].map(([, rule = '']) => rule),
  );
  const named = found.flatMap((rule) =>
    rule.startsWith('$' + '{kind}') ? ['User', 'Team'].map((kind) => rule.replace('$' + '{kind}', kind)) : [rule],
  );
  const ofSchema = ['Required', 'WrongType', 'NotInEnum', 'Malformed', 'TooSmall', 'TooLarge'];
  return [...new Set([...named, ...ofSchema])].filter((rule) => /^[A-Z]\w+$/.test(rule)).sort();
}

/** What somebody is told to do begins with what there is to do. */
const REMEDY =
  /^(add|ask|change|check|choose|correct|create|delete|did you mean|do not|edit|give|keep|leave|lower|move|no object|post|put|raise|refer|remove|see|send|set|shorten|write) ?/;
/** What must be true is what to do, where it is about one value. */
const MUST = /^(must|may not) /;
const PATH = /^(metadata|spec)(\.[A-Za-z][A-Za-z0-9]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*$/;

describe('a finding', () => {
  test('is produced here by every rule that there is', async () => {
    const produced = new Set((await everything()).map(({ rule }) => rule));
    expect(rulesInCode().filter((rule) => !produced.has(rule))).toEqual([]);
  });

  test('says where, what is there, what is wrong, and what to do', async () => {
    const wrong = (await everything()).filter((finding) => {
      const { path, message } = finding;
      const [what = '', ...remedies] = message.split('; ');
      const sentence = toSentence(finding);
      const isWhole = sentence.startsWith(`${path}: `) && sentence.endsWith(message);
      return !(
        PATH.test(path) &&
        isWhole &&
        (MUST.test(what) || REMEDY.test(what) || REMEDY.test(remedies.join('; ')))
      );
    });
    expect([...new Set(wrong.map(toSentence))]).toEqual([]);
  });

  test('fits on a line or two, and never spans any', async () => {
    for (const finding of await everything()) {
      expect(finding.message).not.toMatch(/[\r\n]/);
      expect(finding.message.length, finding.message).toBeLessThan(400);
    }
  });
});
