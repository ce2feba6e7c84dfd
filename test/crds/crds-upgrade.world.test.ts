// Stored objects under an upgrade of the CRDs that tightens a rule, on both clusters.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toManifest } from '#crds/generators/crd.ts';
import { type Kind, type KindName, kindOf, kinds } from '#crds/kinds/kinds.ts';
import { edited, good, type Manifest } from '#crds/test/cases/case.ts';
import { run } from '../support/child.ts';
import { bothInCampaigns, startCluster } from '../support/clusters.ts';
import type { Answer, TestControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { describeUnless } from '../support/skip-unless.ts';

const MERGE = { 'content-type': 'application/merge-patch+json' };

/** Rules that the earlier version did not have, by their first words. */
const NEW_RULES = [
  'requiresAuth is true; ',
  'must be at most maxBudget; ',
  'autoCreateKey is true; add keyAlias',
  'must be at most 36525 days',
  'must have keys ',
  'must be shorter than every; ',
  'may have at most ',
];
/** The earlier version accepted any text of ten characters in place of the dollar pattern. */
const MONEY_BEFORE = '^.{1,10}$';

/** The CRD of the kind, as an earlier version might have had it. */
function looser(kind: Kind): object {
  const isMoney = (value: unknown) => typeof value === 'string' && value.includes('1000000000');
  return JSON.parse(
    JSON.stringify(toManifest(kind), (member, value) => {
      if (member === 'pattern' && isMoney(value)) return MONEY_BEFORE;
      if (member !== 'x-kubernetes-validations') return value;
      const kept = (value as Array<{ message: string }>).filter(
        ({ message }) => !NEW_RULES.some((text) => message.startsWith(text)),
      );
      return kept.length === 0 ? undefined : kept;
    }),
  );
}

interface OldObject {
  readonly what: string;
  readonly kind: KindName;
  readonly object: Manifest;
  /** Another violation of the same rule in the same field. */
  readonly worse: object;
  /** The correction of the violation. */
  readonly right: object;
}

const old = (kind: KindName, name: string, edit: Readonly<Record<string, unknown>>): Manifest => ({
  ...edited(good[kind], edit),
  metadata: { name },
});
/** Every old object has a twin, of which only other fields are changed. */
const restOf = ({ metadata }: Manifest) => ({ name: `${metadata.name}-rest` });

const [withCredentials, withoutCredentials] = good.GatewayInstance.spec.models as ReadonlyArray<object>;

const TEXTS = Object.fromEntries(Array.from({ length: 8 }, (_, place) => [`text ${place}`, 'x'.repeat(1024)]));

const WRONG_MODELS = [withCredentials, { ...withoutCredentials, requiresAuth: true }];

const OLD: ReadonlyArray<OldObject> = [
  {
    what: 'a key whose budget breaks a tightened pattern',
    kind: 'VirtualKey',
    object: old('VirtualKey', 'pattern', { 'spec.maxBudget': '$10' }),
    worse: { maxBudget: '$11' },
    right: { maxBudget: '11' },
  },
  {
    what: 'a key whose duration breaks a new rule',
    kind: 'VirtualKey',
    object: old('VirtualKey', 'rule', { 'spec.duration': '99999999d' }),
    worse: { duration: '99999998d' },
    right: { duration: '1d' },
  },
  {
    what: 'a key whose free entries break a new rule about a map',
    kind: 'VirtualKey',
    object: old('VirtualKey', 'map', { 'spec.metadata': { '': 'x' } }),
    worse: { metadata: { '': 'y' } },
    right: { metadata: null },
  },
  {
    what: 'a key whose texts together are longer than a new rule allows',
    kind: 'VirtualKey',
    object: old('VirtualKey', 'long', { 'spec.metadata': { a: 'x'.repeat(1000), ...TEXTS } }),
    worse: { metadata: { a: 'y' } },
    right: { metadata: null },
  },
  {
    what: 'a key of which two fields together break a new rule',
    kind: 'VirtualKey',
    object: old('VirtualKey', 'two-fields', { 'spec.softBudget': '12' }),
    worse: { softBudget: '13' },
    right: { softBudget: '9' },
  },
  {
    what: 'a key of which two members of a field together break a new rule',
    kind: 'VirtualKey',
    object: old('VirtualKey', 'two-members', { 'spec.rotation': { every: '10d', overlap: '30d' } }),
    worse: { rotation: { overlap: '31d' } },
    right: { rotation: { overlap: '1d' } },
  },
  {
    what: 'a user who lacks what a new rule requires',
    kind: 'User',
    object: old('User', 'lacking', { 'spec.autoCreateKey': true, 'spec.maxBudget': '1', 'spec.budgetDuration': '1d' }),
    worse: { keyAlias: null, budgetDuration: null },
    right: { keyAlias: 'ada' },
  },
  {
    what: 'a team whose budget breaks a tightened pattern',
    kind: 'Team',
    object: old('Team', 'pattern', { 'spec.maxBudget': 'ten' }),
    worse: { maxBudget: 'nine' },
    right: { maxBudget: '9' },
  },
  {
    what: 'an instance of which one entry breaks a new rule',
    kind: 'GatewayInstance',
    object: old('GatewayInstance', 'entry', { 'spec.models.1.requiresAuth': true }),
    worse: { models: [...WRONG_MODELS, { ...withoutCredentials, requiresAuth: true, identifier: 'third' }] },
    right: { models: [withCredentials, withoutCredentials] },
  },
];

for (const { name, why } of bothInCampaigns()) {
  describeUnless(why, `an upgrade of the CRDs, on the ${name} cluster,`, () => {
    let server: TestControlPlane;

    const apply = async (objects: readonly object[]): Promise<string> => {
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
      const { code, stdout, stderr } = await run(
        'kubectl',
        ['apply', '-f', '-'],
        { KUBECONFIG: server.kubeconfig },
        list,
      );
      if (code !== 0) throw new Error(`kubectl ended with ${code}: ${stderr}`);
      return stdout;
    };

    beforeAll(async () => {
      server = await startCluster(name);
      await apply(kinds.map(looser));
      for (const kind of kinds) await until(async () => (await server.call('GET', folderOf(kind))).code === 200);
      await apply(
        OLD.flatMap(({ kind, object }) => [full(kind, object), full(kind, { ...object, metadata: restOf(object) })]),
      );
      await apply(kinds.map(toManifest));
      // The new CRD is in force a moment after it is stored: an object that was accepted before is refused.
      for (const one of OLD) await until(async () => (await createdAgain(one)).code === 422);
    });
    afterAll(() => server?.stop());

    const createdAgain = ({ kind, object }: OldObject): Promise<Answer> =>
      server.call(
        'POST',
        `${folderOf(kindOf[kind])}?dryRun=All`,
        full(kind, { ...object, metadata: { name: 'another' } }),
      );
    const pathOf = ({ kind, object }: OldObject) => `${folderOf(kindOf[kind])}/${object.metadata.name}`;
    const patch = (one: OldObject, change: object, subresource = '') =>
      server.call('PATCH', `${pathOf(one)}${subresource}`, change, MERGE);
    const outcomeOf = ({ code, body }: Answer) => (code === 200 ? 200 : (body as { message?: string }).message);

    describe.each(OLD)('leaves $what', (one) => {
      test('labelable and annotatable, by patch and by apply', async () => {
        const metadata = { labels: { a: 'b' }, annotations: { a: 'b' } };
        expect(outcomeOf(await patch(one, { metadata }))).toBe(200);
        const { object } = one;
        const labelled = { ...full(one.kind, object), metadata: { ...object.metadata, labels: { a: 'c' } } };
        expect(await apply([labelled])).toMatch(/ configured\n$/);
        expect(await apply([labelled])).toMatch(/ unchanged\n$/);
      });

      test('with a working status', async () => {
        const condition = {
          type: 'Ready',
          status: 'True',
          reason: 'Ready',
          message: '',
          lastTransitionTime: '2026-11-21T12:00:00Z',
        };
        const answer = await patch(one, { status: { observedGeneration: 1, conditions: [condition] } }, '/status');
        expect(outcomeOf(answer)).toBe(200);
        expect(answer.body).toMatchObject({ status: { observedGeneration: 1, conditions: [condition] } });
      });

      test('refused when the violation is replaced by another, accepted when it is corrected', async () => {
        const answer = await patch(one, { spec: one.worse });
        expect(answer.code, outcomeOf(answer)?.toString()).toBe(422);
        const put = await server.call('PATCH', `${pathOf(one)}?dryRun=All`, { spec: one.right }, MERGE);
        expect(outcomeOf(put)).toBe(200);
      });

      test('deletable, finalizer and all', async () => {
        expect(outcomeOf(await patch(one, { metadata: { finalizers: ['example.com/kept'] } }))).toBe(200);
        expect((await server.call('DELETE', pathOf(one))).code).toBe(200);
        expect((await server.call('GET', pathOf(one))).body).toMatchObject({
          metadata: { deletionTimestamp: expect.any(String) },
        });
        expect(outcomeOf(await patch(one, { status: { observedGeneration: 2 } }, '/status'))).toBe(200);
        expect(outcomeOf(await patch(one, { metadata: { finalizers: null } }))).toBe(200);
        expect((await server.call('GET', pathOf(one))).code).toBe(404);
      });
    });

    describe('and the other fields of an invalid object', () => {
      const rest = (name: string, kind: KindName, spec: object) =>
        server.call('PATCH', `${folderOf(kindOf[kind])}/${name}-rest`, { spec }, MERGE);

      test.each<readonly [string, KindName, object]>([
        ['pattern', 'VirtualKey', { blocked: true, budgetDuration: '7d' }],
        ['rule', 'VirtualKey', { blocked: true, maxBudget: '11' }],
        ['map', 'VirtualKey', { blocked: true, tags: ['a'] }],
        ['long', 'VirtualKey', { blocked: true, tags: ['a'] }],
        ['two-fields', 'VirtualKey', { blocked: true }],
        ['two-fields', 'VirtualKey', { maxBudget: '11' }],
        ['two-members', 'VirtualKey', { blocked: true, rotation: { every: '20d', overlap: '30d' } }],
        ['lacking', 'User', { blocked: true, maxBudget: '2' }],
        ['pattern', 'Team', { blocked: true, teamAlias: 'Other' }],
        ['entry', 'GatewayInstance', { paused: true, models: [...WRONG_MODELS].reverse() }],
        ['entry', 'GatewayInstance', { models: [WRONG_MODELS[0], { ...WRONG_MODELS[1], modelName: 'other' }] }],
      ])('can be changed while the violation stays (%s, %s, %j)', async (name, kind, spec) => {
        expect(outcomeOf(await rest(name, kind, spec))).toBe(200);
      });

      test.each<readonly [string, KindName, object, string]>([
        ['two-fields', 'VirtualKey', { softBudget: '14' }, 'spec.softBudget'],
        ['two-members', 'VirtualKey', { rotation: { every: '20d', overlap: '40d' } }, 'spec.rotation.overlap'],
        ['lacking', 'User', { budgetDuration: null }, 'spec.budgetDuration'],
      ])('are refused another violation (%s, %s, %j)', async (name, kind, spec, field) => {
        expect(outcomeOf(await rest(name, kind, spec))).toContain(`${field}: Invalid value: "object": `);
      });

      test('are validated again once the object is corrected', async () => {
        expect(outcomeOf(await rest('two-fields', 'VirtualKey', { softBudget: '9' }))).toBe(200);
        expect(outcomeOf(await rest('two-fields', 'VirtualKey', { softBudget: '12' }))).toContain(
          'must be at most maxBudget',
        );
      });
    });
  });
}

const folderOf = ({ apiVersion, plural }: Kind) => `/apis/${apiVersion}/namespaces/default/${plural}`;

const full = (name: KindName, { metadata, ...rest }: Manifest) => {
  const { apiVersion, kind } = kindOf[name];
  return { apiVersion, kind, metadata: { namespace: 'default', ...metadata }, ...rest };
};

const until = (is: () => Promise<boolean>): Promise<boolean> => eventually(is, Boolean);
