// What happens while the admission function is down?
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import { toManifest } from '#crds/generators/crd.ts';
import { kinds, virtualKeys } from '#crds/kinds/kinds.ts';
import type { Condition } from '#crds/kinds/shared-fields.ts';
import { createReconciler } from '../../functions/reconcile/app.ts';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { IN_CLUSTER, webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { backendsOf } from '../doubles/backends.ts';
import { createMemoryLedgerRows } from '../doubles/ledger-rows.ts';
import { createMemoryRegistry } from '../doubles/registry.ts';
import type { ChildResult } from '../support/child.ts';
import { bothInCampaigns } from '../support/clusters.ts';
import { eventually } from '../support/eventually.ts';
import { describeSideBySide } from '../support/side-by-side.ts';
import { silentLog } from '../support/silent-log.ts';
import { AROUND, LEAVING } from './around.ts';
import { BYPASSED } from './bypassed.ts';
import { GOOD, objectOf } from './fixtures.ts';
import { type Harness, openHarness } from './harness.ts';
import { BASE } from './manifests.ts';
import { sentencesOf } from './sentences.ts';

const WEBHOOK =
  /failed calling webhook "mutate\.gateway-operator\.dev": failed to call webhook: Post "https:\/\/127\.0\.0\.1:\d+\/[^/]+\/mutate\?timeout=5s": dial tcp 127\.0\.0\.1:\d+: connect: connection refused/;

describeSideBySide(bothInCampaigns(), 'with the admission function down', ({ name }) => {
  let harness: Harness;
  let up: () => Promise<void>;

  const kubectl = (args: string, ...input: KubeObject[]): Promise<ChildResult> =>
    harness.kubectl(args.split(' '), input.map((object) => JSON.stringify(object)).join('\n'));
  const key = (named: string) =>
    objectOf(
      'VirtualKey',
      { ...GOOD.VirtualKey, keyAlias: named, userRef: undefined, teamRef: undefined },
      { name: named },
    );

  beforeAll(async () => {
    harness = await openHarness(name);
    const applied = await kubectl('apply -f -', ...BASE, ...AROUND, ...['first', 'second', 'third'].map(key));
    expect(applied.code, applied.stderr).toBe(0);
    up = await harness.down();
  });
  afterAll(() => harness?.stop());

  describe('and `Fail`, the default', () => {
    test('a create and an edit are refused in the words of the API server', async () => {
      const created = await kubectl('create -f -', key('new'));
      expect(created.code).toBe(1);
      expect(created.stderr).toMatch(WEBHOOK);
      expect(created.stderr).toContain('(InternalError)');
      const edited = await harness.kubectl([
        'patch',
        'vk',
        '-n',
        'team-a',
        'first',
        '--type=merge',
        '-p',
        '{"spec":{"blocked":true}}',
      ]);
      expect(edited.stderr).toMatch(WEBHOOK);
      expect(edited.code).toBe(1);
    });

    test('a status is written', async () => {
      const written = await harness.cluster.patch(
        virtualKeys,
        'team-a',
        'first',
        { status: { isActive: true } },
        'status',
      );
      expect(written).toMatchObject({ ok: true, object: { status: { isActive: true } } });
    });

    test('objects are read, and deleted', async () => {
      expect(await kubectl('get vk -n team-a first -o name')).toMatchObject({ code: 0 });
      expect(await kubectl('delete vk -n team-a second')).toMatchObject({ code: 0 });
      expect((await kubectl('get vk -n team-a second')).stderr).toContain('(NotFound)');
    });

    test('a finalizer is removed from what is being deleted, so nothing sticks', async () => {
      const restore = await ignoring();
      const kept = JSON.stringify({ metadata: { finalizers: ['example.com/kept'] } });
      expect(await harness.kubectl(['patch', 'vk', '-n', 'team-a', 'third', '--type=merge', '-p', kept])).toMatchObject(
        {
          code: 0,
        },
      );
      await restore();
      expect(await kubectl('delete vk -n team-a third --wait=false')).toMatchObject({ code: 0 });
      expect(await kubectl('get vk -n team-a third -o name')).toMatchObject({ code: 0 });
      const free = JSON.stringify({ metadata: { finalizers: null } });
      expect(await harness.kubectl(['patch', 'vk', '-n', 'team-a', 'third', '--type=merge', '-p', free])).toMatchObject(
        {
          code: 0,
        },
      );
      expect((await kubectl('get vk -n team-a third')).stderr).toContain('(NotFound)');
    });
  });

  describe('and our own identity', () => {
    test('reconcile writes all the same, because it is not judged', async () => {
      const [mutating] = webhookConfigurations(IN_CLUSTER) as ReadonlyArray<{
        webhooks?: [{ matchConditions: unknown }];
      }>;
      const value = mutating?.webhooks?.[0].matchConditions;
      for (const kind of ['mutatingwebhookconfiguration', 'validatingwebhookconfiguration']) {
        const patch = JSON.stringify([{ op: 'replace', path: '/webhooks/0/matchConditions', value }]);
        expect(await harness.kubectl(['patch', kind, 'gateway-operator', '--type=json', '-p', patch])).toMatchObject({
          code: 0,
        });
      }
      const label = 'label vk -n team-a first a=b --overwrite';
      const own = `--as=${IN_CLUSTER.ownUser} --as-group=system:masters`;
      expect(
        await eventually(
          () => kubectl(`${label} ${own}`),
          ({ code }) => code === 0,
        ),
      ).toMatchObject({ stderr: '' });
      expect((await kubectl(label.replace('a=b', 'a=c'))).stderr).toMatch(WEBHOOK);
    });
  });

  describe('and `Ignore`', () => {
    const refusals = new Map<string, string>();

    beforeAll(async () => {
      await up();
      for (const { kind, metadata } of LEAVING)
        await kubectl(`delete ${kind} -n ${metadata.namespace} ${metadata.name} --wait=false`);
      for (const { what, object } of BYPASSED) refusals.set(what, (await kubectl('create -f -', object)).stderr);
      await harness.down();
      await ignoring();
      await looserCrds();
      const applied = await kubectl('create -f -', ...BYPASSED.map(({ object }) => object));
      expect(applied).toMatchObject({ code: 0, stderr: '' });
      const report = await resyncOver(harness);
      expect(report).toMatchObject({ failed: {} });
    });

    test.each(BYPASSED)('$what gets in, and reconcile says what admission says', async (one) => {
      const { namespace, name: named } = one.object.metadata;
      const [, refused] = refusals.get(one.what)?.split(' denied the request: ') ?? [];
      const found = await harness.cluster.get(resourceOf(one.object.kind), namespace, named);
      const { conditions = [] } = (found?.status ?? {}) as { readonly conditions?: ReadonlyArray<Condition> };
      const condition = conditions.find(({ type }) => type === one.condition);
      expect(condition, JSON.stringify(conditions)).toMatchObject({ status: 'False', reason: one.rule });
      expect(sentencesOf(condition?.message ?? '')).toEqual(sentencesOf(refused ?? 'it was let in'));
    });

    test('what of that keeps nothing from working leaves Ready alone', async () => {
      const ready = async (what: string) => {
        const { kind, metadata } = BYPASSED.find((one) => one.what === what)?.object ?? objectOf('Team');
        const found = await harness.cluster.get(resourceOf(kind), metadata.namespace, metadata.name);
        const { conditions = [] } = (found?.status ?? {}) as { readonly conditions?: ReadonlyArray<Condition> };
        return conditions.find(({ type }) => type === 'Ready')?.status;
      };
      expect(await ready('an instance of which two entries share a Secret')).toBe('True');
      expect(await ready('an instance of which one entry has no Secret')).toBe('True');
      expect(await ready('a key of which one model of two is not served')).toBe('True');
      expect(await ready('a user of which one model of two is not served')).toBe('True');
    });

    test('models are not called ready where their instance is not there', async () => {
      const { metadata } = BYPASSED.find(({ rule }) => rule === 'InstanceNotFound')?.object ?? objectOf('Team');
      const found = await harness.cluster.get(virtualKeys, metadata.namespace, metadata.name);
      const { conditions = [] } = (found?.status ?? {}) as { readonly conditions?: ReadonlyArray<Condition> };
      const models = conditions.find(({ type }) => type === 'ModelsReady');
      expect(models).toMatchObject({ status: 'Unknown', reason: 'InstanceNotFound' });
    });

    test('a user whose key got no alias has a key that says so', async () => {
      const user = BYPASSED.find(({ what }) => what === 'a user whose key would have the alias of another key');
      const { namespace, name: named = '' } = user?.object.metadata ?? {};
      const key = await harness.cluster.get(virtualKeys, namespace, named);
      expect(key?.status).toMatchObject({ isActive: false });
      const { conditions = [] } = (key?.status ?? {}) as { readonly conditions?: ReadonlyArray<Condition> };
      expect(conditions[0]).toMatchObject({ type: 'Ready', status: 'False', reason: 'AliasTaken' });
    });
  });

  /** Puts CRDs in place as a version before might have had them: types alone. */
  async function looserCrds(): Promise<void> {
    const definitions = kinds.map((kind) => {
      const text = JSON.stringify(toManifest(kind), (member, value) => (RULES.has(member) ? undefined : value));
      return JSON.parse(text) as KubeObject;
    });
    expect(await kubectl('replace -f -', ...definitions)).toMatchObject({ code: 0 });
    const old = BYPASSED.filter(({ condition }) => condition === 'SpecValid').map(({ object }) => object);
    const tried = await eventually(
      () => kubectl('create --dry-run=server -f -', ...old),
      ({ code }) => code === 0,
    );
    expect(tried.stderr).toBe('');
  }

  /** Sets both webhooks to `Ignore`; answers how to set them back. */
  async function ignoring(): Promise<() => Promise<void>> {
    const set = async (policy: string) => {
      for (const kind of ['mutatingwebhookconfiguration', 'validatingwebhookconfiguration']) {
        const patch = JSON.stringify([{ op: 'replace', path: '/webhooks/0/failurePolicy', value: policy }]);
        const refusal = await harness.kubectl(['patch', kind, 'gateway-operator', '--type=json', '-p', patch]);
        expect(refusal).toMatchObject({ code: 0 });
      }
      // In force a moment after it was stored.
      const wanted = policy === 'Ignore' ? 0 : 1;
      await eventually(
        () => kubectl('create --dry-run=server -f -', key('probe')),
        ({ code }) => code === wanted,
      );
    };
    await set('Ignore');
    return () => set('Fail');
  }
});

const RULES = new Set(['x-kubernetes-validations', 'x-kubernetes-list-type', 'x-kubernetes-list-map-keys', 'pattern']);

/** One run of reconcile over the cluster, with databases in memory. */
async function resyncOver({ cluster }: Harness): Promise<unknown> {
  const node = nodeDependencies();
  const ledgerRows = createMemoryLedgerRows();
  const database = { ...ledgerRows, ...createMemoryRegistry({ clock: node.clock, recount: ledgerRows.recount }) };
  const app = createReconciler({
    ...node,
    cluster,
    backends: backendsOf({
      database: () => database,
      probeStore: async () => ({ ok: true }),
      flush: async () => undefined,
      maintain: async () => undefined,
      clearStore: async () => undefined,
    }),
    platform: {
      servedAt: ({ metadata }) => `http://gateway.test/${metadata.namespace}/${metadata.name}`,
      gatewayImage: 'gateway',
      version: '0.1.0',
      manyProcesses: false,
      inCluster: false,
    },
    log: silentLog,
    metrics: createMetrics(),
  });
  let report: unknown;
  for (let run = 0; run < 2; run += 1) report = await (await app.request('/', { method: 'POST' })).json();
  return report;
}
