// Do the generated ValidatingAdmissionPolicies judge as we do, on a real API server where nothing else does?
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { cases } from '#crds/cases/all.ts';
import { edited, good, type Manifest, objectsOf } from '#crds/cases/case.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/group.ts';
import { judge } from '#crds/judge.ts';
import { type Kind, type KindName, kindOf, kinds } from '#crds/kinds.ts';
import { toManifest } from '#crds/manifest.ts';
import { toPolicy } from '#crds/policy.ts';
import { type Answer, startControlPlane, type TestControlPlane, whyNoControlPlane } from './control-plane.ts';
import { type Mutant, mutant } from './crds-mutants.ts';
import { describeUnless } from './skip-unless.ts';

const why = whyNoControlPlane();
const FILE = join(import.meta.dirname, '../infra/kubernetes/policy.yaml');
const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const BINDINGS = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings`;
const MERGE = { 'content-type': 'application/merge-patch+json' };

describeUnless(why, 'policies on a real API server', () => {
  let server: TestControlPlane;

  beforeAll(async () => {
    server = await startControlPlane({ controllers: ['validatingadmissionpolicy-status-controller'] });
    for (const kind of kinds) await made('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', withoutRules(kind));
    for (const kind of kinds) await until(async () => (await server.call('GET', folderOf(kind))).code === 200);
    for (const [kind, object] of OLD) await made(folderOf(kindOf[kind]), full(kind, object));
    const text = readFileSync(join(import.meta.dirname, '../infra/kubernetes/policy.yaml'), 'utf8');
    for (const document of parseAllDocuments(text)) {
      const object = document.toJS() as { kind: string };
      await made(object.kind === 'ValidatingAdmissionPolicy' ? POLICIES : BINDINGS, object);
    }
    // A policy is in force a moment after its binding was stored; those of all kinds were stored together.
    for (const [kind, object] of OLD) await until(async () => (await create(kind, object)).code === 422);
  });
  afterAll(() => server?.stop());

  const create = (kind: KindName, { metadata, ...rest }: Manifest): Promise<Answer> =>
    server.call(
      'POST',
      `${folderOf(kindOf[kind])}?dryRun=All`,
      full(kind, { ...rest, metadata: { ...metadata, name: `${metadata.name}-x` } }),
    );
  const patch = (kind: KindName, name: string, change: object, subresource = '') =>
    server.call('PATCH', `${folderOf(kindOf[kind])}/${name}${subresource}`, change, MERGE);

  async function made(path: string, object: object): Promise<void> {
    const { code, body } = await server.call('POST', path, object);
    expect(code, JSON.stringify(body)).toBe(201);
  }

  test('are type-checked by the API server without a warning', async () => {
    for (const kind of kinds) {
      const status = await statusOf(toPolicy(kind).metadata.name);
      expect(status.typeChecking).toEqual({});
    }
    // That it looks at our fields at all:
    const { metadata, ...rest } = toPolicy(kindOf.Team);
    const wrong = {
      ...rest,
      metadata: { name: 'wrong' },
      spec: { ...rest.spec, validations: [{ expression: 'object.spec.teamAlis == ""' }] },
    };
    await made(POLICIES, wrong);
    expect(JSON.stringify((await statusOf('wrong')).typeChecking)).toContain("undefined field 'teamAlis'");
  });

  async function statusOf(name: string): Promise<{ typeChecking?: object; observedGeneration?: number }> {
    const read = async () =>
      ((await server.call('GET', `${POLICIES}/${name}`)).body as { status?: object }).status ?? {};
    await until(async () => 'observedGeneration' in (await read()));
    return read();
  }

  test('are unchanged when they are applied again', () => {
    const apply = () =>
      execFileSync('kubectl', ['--kubeconfig', server.kubeconfig, 'apply', '--validate=strict', '-f', FILE], {
        encoding: 'utf8',
        // Made without kubectl at first, which it warns of once.
        stdio: ['ignore', 'pipe', 'ignore'],
      });
    apply();
    expect(apply().replace(/^.* unchanged\n/gm, '')).toBe('');
  });

  test.each(cases)('judge a $kind $what as we do', async (one) => {
    const { object, old } = objectsOf(one);
    const kind = kindOf[one.kind];
    const answer = await verdict(kind, object, old);
    const found = judge(kind, object, old);
    expect(answer.code < 300, JSON.stringify(answer.body)).toBe(found.length === 0);
    const texts = toPolicy(kind).spec.validations.map(({ message }) => message);
    const ofPolicy = found.filter(({ message }) => texts.some((text) => text.endsWith(`: ${message}`)));
    if (found.length === 0 || ofPolicy.length < found.length) return;
    const said = (answer.body as { message: string }).message;
    expect(said).toContain(`ValidatingAdmissionPolicy '${toPolicy(kind).metadata.name}'`);
    expect(ofPolicy.some(({ message }) => said.includes(`: ${message}`))).toBe(true);
  });

  async function verdict(kind: Kind, object: Manifest, old: Manifest | undefined): Promise<Answer> {
    const folder = folderOf(kind);
    if (old === undefined) return server.call('POST', `${folder}?dryRun=All`, full(kind.kind, object));
    const stored = await server.call('POST', folder, full(kind.kind, old));
    expect(stored.code, JSON.stringify(stored.body)).toBe(201);
    const path = `${folder}/${old.metadata.name}`;
    const { metadata } = stored.body as { metadata: object };
    const answer = await server.call('PUT', `${path}?dryRun=All`, { ...full(kind.kind, object), metadata });
    await server.call('DELETE', path);
    return answer;
  }

  test('never accept what we refuse, nor refuse what we accept', async () => {
    const judged = async ({ kind: name, object }: Mutant) => {
      const kind = kindOf[name];
      // Two entries may share a Secret as far as the CRD knows: what only a policy says has its own test.
      const metadata = { ...object.metadata, annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } };
      const path = `${folderOf(kind)}?dryRun=All&fieldValidation=Ignore`;
      const { code, body } = await server.call('POST', path, full(name, { ...object, metadata } as Manifest));
      const found = judge(kind, object);
      expect(code === 201, JSON.stringify({ body, found })).toBe(found.length === 0);
      if (code !== 201) expect((body as { message: string }).message).not.toContain('resulted in error');
    };
    await fc.assert(fc.asyncProperty(mutant, judged), { numRuns: 600 });
  });

  test('refuse two entries with one Secret in the words of the function, unless the annotation allows it', async () => {
    const { code, body } = await create('GatewayInstance', SHARING);
    expect(code).toBe(422);
    expect((body as { message: string }).message).toContain(
      'spec.models["local"].modelCredentials.nameRef: "openai": is the Secret of entry "gpt-4o-eu" already; give each entry a Secret of ' +
        'its own, or allow sharing with the annotation instance.gateway-operator.dev/shared-credentials: "allowed"',
    );
    const annotated = {
      ...SHARING,
      metadata: { name: 'allowed', annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } },
    };
    await made(folderOf(kindOf.GatewayInstance), full('GatewayInstance', annotated));
    const label = await patch('GatewayInstance', 'allowed', { metadata: { labels: { a: 'b' } } });
    expect(label.code).toBe(200);
    const without = await patch('GatewayInstance', 'allowed', { metadata: { annotations: null } });
    expect(without.code).toBe(422);
  });

  test('name the entry of the list that is wrong', async () => {
    const object = edited(good.GatewayInstance, { 'spec.models.1.requiresAuth': true });
    expect(((await create('GatewayInstance', object)).body as { message: string }).message).toContain(
      'spec.models["local"].modelCredentials: requiresAuth is true; add modelCredentials',
    );
  });

  test('let an object that was wrong before be labelled, given a status, freed and deleted', async () => {
    for (const [kind, { metadata }] of OLD) {
      const { name } = metadata;
      const answers = [
        await patch(kind, name, { metadata: { labels: { a: 'b' }, annotations: { a: 'b' } } }),
        await patch(kind, name, { metadata: { finalizers: ['example.com/kept'] } }),
        await patch(kind, name, { status: { observedGeneration: 1 } }, '/status'),
      ];
      expect(answers.map(({ code, body }) => (code === 200 ? 200 : body))).toEqual([200, 200, 200]);
    }
  });

  test('let the rest of an object that was wrong before be changed, but no mistake be added or exchanged', async () => {
    const spec = async (change: object) => (await patch('VirtualKey', 'old-key', { spec: change })).code;
    expect(await spec({ blocked: true })).toBe(200);
    expect(await spec({ maxBudget: '11' })).toBe(200);
    expect(await spec({ softBudget: '13' })).toBe(422);
    expect(await spec({ duration: '99999999d' })).toBe(422);
    expect(await spec({ keyAlias: 'other' })).toBe(422);
    expect(await spec({ softBudget: '5' })).toBe(200);
    expect(await spec({ softBudget: '12' })).toBe(422);
    const models = SHARING.spec.models as ReadonlyArray<{ identifier: string }>;
    const instance = async (list: unknown) =>
      (await patch('GatewayInstance', 'old-instance', { spec: { models: list } })).code;
    const third = { ...models[0], identifier: 'third' };
    expect(await instance([...models, third])).toBe(422);
    expect(await instance([...models].reverse())).toBe(200);
    expect(
      await instance([...models, { ...third, modelCredentials: { nameRef: 'own', keys: { apiKey: 'key' } } }]),
    ).toBe(200);
  });

  test('never hold an object that is being deleted', async () => {
    for (const [kind, { metadata }] of OLD) {
      const path = `${folderOf(kindOf[kind])}/${metadata.name}`;
      await patch(kind, metadata.name, { metadata: { finalizers: ['example.com/kept'] } });
      expect((await server.call('DELETE', path)).code).toBe(200);
      expect((await server.call('GET', path)).body).toMatchObject({
        metadata: { deletionTimestamp: expect.any(String) },
      });
      const freed = await patch(kind, metadata.name, { metadata: { finalizers: null } });
      expect(freed.code, JSON.stringify(freed.body)).toBe(200);
      expect((await server.call('GET', path)).code).toBe(404);
    }
  });

  test('judge the largest instance there can be within the cost that the API server allows', async () => {
    const [entry] = good.GatewayInstance.spec.models as ReadonlyArray<object>;
    const entries = (secretOf: (index: number) => string) =>
      Array.from({ length: 512 }, (_, index) => ({
        ...entry,
        identifier: `${'entry'.repeat(10)}-${index}`,
        modelCredentials: {
          nameRef: secretOf(index),
          keys: { apiKey: 'key', apiBase: 'base', apiVersion: 'version' },
        },
        gatewayParams: { model: 'openai/gpt-4o', timeout: '30s' },
      }));
    const large = (models: unknown) => edited(good.GatewayInstance, { 'spec.models': models });
    const name = 'x'.repeat(240);
    const distinct = await create('GatewayInstance', large(entries((index) => `${name}-${index}`)));
    expect(distinct.code, JSON.stringify(distinct.body)).toBe(201);
    for (const secretOf of [
      (index: number) => `${name}-${index >> 1}`,
      (index: number) => `${name}-${index % 511}`,
      () => name,
    ]) {
      const { code, body } = await create('GatewayInstance', large(entries(secretOf)));
      expect(code).toBe(422);
      expect((body as { message: string }).message).toContain('give each entry a Secret of its own');
    }
  });
});

const folderOf = ({ apiVersion, plural }: Kind) => `/apis/${apiVersion}/namespaces/default/${plural}`;

const full = (name: KindName, { metadata, ...rest }: Manifest) => {
  const { apiVersion, kind } = kindOf[name];
  return { apiVersion, kind, metadata, ...rest };
};

/** The schema alone: what the policies refuse here, nobody else would. */
const withoutRules = (kind: Kind): object =>
  JSON.parse(
    JSON.stringify(toManifest(kind), (member, value) => (member === 'x-kubernetes-validations' ? undefined : value)),
  );

const SHARING = edited(good.GatewayInstance, {
  'spec.models.1.requiresAuth': true,
  'spec.models.1.modelCredentials': { nameRef: 'openai', keys: { apiKey: 'key' } },
});

/** Stored before there was a policy, each against one. */
const OLD: ReadonlyArray<readonly [KindName, Manifest]> = [
  ['GatewayInstance', { ...SHARING, metadata: { name: 'old-instance' } }],
  ['VirtualKey', { ...edited(good.VirtualKey, { 'spec.softBudget': '12' }), metadata: { name: 'old-key' } }],
  ['User', { ...edited(good.User, { 'spec.autoCreateKey': true }), metadata: { name: 'old-user' } }],
  ['Team', { ...edited(good.Team, { 'spec.budgetDuration': '99999999d' }), metadata: { name: 'old-team' } }],
];

async function until(is: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 30_000; !(await is()); await pause(100)) {
    if (Date.now() > end) throw new Error('still not so after 30 s');
  }
}
