// What does somebody with the stock kubectl get to read, on the embedded cluster and on a real API server, with the
// function in Node and in workerd?

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { FINALIZER, REQUESTED_BY_ANNOTATION } from '#crds/names/group.ts';
import { bothInCampaigns, CLUSTERS, ONE_CLUSTER } from '../support/clusters.ts';
import { eventually } from '../support/eventually.ts';
import { describeSideBySide } from '../support/side-by-side.ts';
import { whyNotAll } from '../support/skip-unless.ts';
import { GOOD, modelEntry, objectOf, secretOf } from './fixtures.ts';
import { type Harness, openHarness } from './harness.ts';
import { BAD_ONES, BASE, GOOD_ONES, IN_THE_WAY } from './manifests.ts';
import { inNode, inWorkerd } from './runtimes.ts';

/** Each cluster and each runtime once; all four pairs in `npm run campaigns`. */
const RUNTIMES = [
  { runtime: 'Node', deploy: inNode, why: undefined, clusters: CLUSTERS.slice(0, 1) },
  { runtime: 'workerd', deploy: inWorkerd, why: whyNotAll, clusters: ONE_CLUSTER },
];

for (const { runtime, deploy, why, clusters } of RUNTIMES) {
  const places = bothInCampaigns(clusters).map((cluster) => ({ ...cluster, why: why ?? cluster.why }));
  describeSideBySide(places, `kubectl, admission in ${runtime}`, ({ name }) => {
    let harness: Harness;
    beforeAll(async () => {
      harness = await openHarness(name, {}, deploy);
    });
    afterAll(() => harness?.stop());

    const file = (objects: ReadonlyArray<unknown>) =>
      objects.map((object) => stringify(JSON.parse(JSON.stringify(object)), { version: '1.1' })).join('---\n');
    const apply = (objects: ReadonlyArray<unknown>, ...args: string[]) =>
      harness.kubectl(['apply', '-f', '-', ...args], file(objects));
    const lines = (text: string) => text.split('\n').filter((line) => line !== '');

    test('one file with everything is applied, and applied again it is unchanged', async () => {
      const first = await apply(BASE);
      expect(first).toMatchObject({ code: 0, stderr: '' });
      expect(lines(first.stdout).every((line) => line.endsWith(' created'))).toBe(true);
      const second = await apply(BASE);
      expect(second).toMatchObject({ code: 0, stderr: '' });
      expect(lines(second.stdout).every((line) => line.endsWith(' unchanged'))).toBe(true);
    });

    test('a dry run of a file whose objects need each other warns where they do', async () => {
      const fresh = [
        secretOf('database', { host: 'h', user: 'u', password: '', name: 'n' }, 'team-b'),
        objectOf('GatewayInstance', GOOD.GatewayInstance, { name: 'new', namespace: 'team-b' }),
        objectOf(
          'VirtualKey',
          {
            ...GOOD.VirtualKey,
            userRef: { name: 'new' },
            teamRef: undefined,
            connectionRef: { instanceRef: { name: 'new', namespace: 'team-b' } },
          },
          { name: 'new' },
        ),
      ];
      const { code, stdout, stderr } = await apply(fresh, '--dry-run=server');
      expect(stderr.replace(/^Warning: .*\n/gm, '')).toBe('');
      expect(code).toBe(0);
      expect(lines(stdout)).toHaveLength(3);
      expect(stderr).toContain('Warning: spec.connectionRef.instanceRef: Not found: "team-b/new": no GatewayInstance');
      expect(stderr).toContain('Warning: spec.userRef.name: Not found: "new": no User');
      expect(stderr).toContain('Warning: spec.databaseSecretRef.nameRef: Not found: "database": no readable Secret');
    });

    test(`${GOOD_ONES.length} good objects are let in, and are unchanged when applied again`, async () => {
      expect(GOOD_ONES.length).toBeGreaterThanOrEqual(40);
      const first = await apply(GOOD_ONES);
      expect(first.stderr).not.toContain('Error');
      expect(first.code).toBe(0);
      expect(lines(first.stdout)).toHaveLength(GOOD_ONES.length);
      const second = await apply(GOOD_ONES);
      expect(lines(second.stdout).filter((line) => !line.endsWith(' unchanged'))).toEqual([]);
    });

    test(`${BAD_ONES.length} bad objects are refused, each by us and in words that name field, value and remedy`, async () => {
      expect(BAD_ONES.length).toBeGreaterThanOrEqual(60);
      await apply(IN_THE_WAY);
      const { code, stdout, stderr } = await apply(BAD_ONES.map(([object]) => object));
      expect(stdout).toBe('');
      expect(code).toBe(1);
      const errors = stderr.split(/^(?=Error from server)/m).filter((text) => text.startsWith('Error'));
      expect(errors).toHaveLength(BAD_ONES.length);
      const unexpected = BAD_ONES.flatMap(([object, ...expected], index) => {
        const message = errors[index] ?? '';
        const missing = expected.filter((words) => !message.includes(words));
        const byUs = /denied the request: /.test(message);
        return missing.length === 0 && byUs ? [] : [{ object: object.metadata.name, missing, message: message }];
      });
      expect(unexpected).toEqual([]);
    });

    test('the key is marked with who applied it', async () => {
      const key = await harness.cluster.get(virtualKeys, 'team-a', 'billing');
      expect(key?.metadata.annotations?.[REQUESTED_BY_ANNOTATION]).toMatch(/.+/);
      const forged = await harness.kubectl([
        'annotate',
        'vk',
        '-n',
        'team-a',
        'billing',
        '--overwrite',
        `${REQUESTED_BY_ANNOTATION}=root`,
      ]);
      expect(forged.code).toBe(0);
      const after = await harness.cluster.get(virtualKeys, 'team-a', 'billing');
      expect(after?.metadata.annotations).toEqual(key?.metadata.annotations);
    });

    test('a new key is marked so whatever time of deletion server-side apply gives it', async () => {
      const forged = { deletionTimestamp: '2999-01-01T00:00:00Z', annotations: { [REQUESTED_BY_ANNOTATION]: 'root' } };
      const metadata = { name: 'leaving', finalizers: ['example.com/theirs'], ...forged };
      const key = objectOf('VirtualKey', { ...GOOD.VirtualKey, keyAlias: 'leaving' }, metadata);
      expect((await apply([key], '--server-side')).code).toBe(0);
      const stored = await harness.cluster.get(virtualKeys, 'team-a', 'leaving');
      expect(stored?.metadata.annotations?.[REQUESTED_BY_ANNOTATION]).not.toBe('root');
      await harness.cluster.patch(virtualKeys, 'team-a', 'leaving', { metadata: { finalizers: null } });
      await harness.kubectl(['delete', 'vk', '-n', 'team-a', 'leaving', '--ignore-not-found']);
    });

    test('an edit of what never changes says why', async () => {
      const patch = JSON.stringify({ spec: { keyAlias: 'other' } });
      const { code, stderr } = await harness.kubectl([
        'patch',
        'vk',
        '-n',
        'team-a',
        'billing',
        '--type=merge',
        '-p',
        patch,
      ]);
      expect(code).toBe(1);
      expect(stderr).toContain('spec.keyAlias: Invalid value: "other": cannot be changed; ');
    });

    test('an editor that saves a mistake is told what it is', async () => {
      const { code, stderr } = await harness.kubectl(['edit', 'vk', '-n', 'team-a', 'billing']);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /denied the request: spec\.maxBudget: Invalid value: "ten": must be a decimal number of dollars/,
      );
    });

    test('an object whose model was withdrawn can still be labelled, raised and blocked', async () => {
      await apply([
        objectOf('VirtualKey', { ...GOOD.VirtualKey, keyAlias: 'old', models: ['claude'] }, { name: 'old' }),
      ]);
      const less = await apply([
        objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models: [modelEntry('gpt-4o')] }),
      ]);
      expect(less.code).toBe(0);
      expect(less.stderr).toMatch(
        /Warning: spec\.models: "claude" is no longer served, and VirtualKeys are restricted to it \([0-9]+\): /,
      );
      const label = await harness.kubectl(['label', 'vk', '-n', 'team-a', 'old', 'a=b']);
      expect(label.code).toBe(0);
      expect(label.stderr).toContain('Warning: spec.models[0]: Not found: "claude": ');
      const patch = JSON.stringify({ spec: { maxBudget: '99', blocked: true } });
      expect((await harness.kubectl(['patch', 'vk', '-n', 'team-a', 'old', '--type=merge', '-p', patch])).code).toBe(0);
      const worse = JSON.stringify({ spec: { models: ['claude', 'llama'] } });
      expect(
        (await harness.kubectl(['patch', 'vk', '-n', 'team-a', 'old', '--type=merge', '-p', worse])).stderr,
      ).toContain('spec.models[1]: Not found: "llama"');
    });

    test('status is written without asking us', async () => {
      const before = await counted(harness);
      expect(before).toBeGreaterThan(100);
      expect(
        await harness.cluster.patch(virtualKeys, 'team-a', 'old', { status: { isActive: false } }, 'status'),
      ).toMatchObject({ ok: true });
      expect(await counted(harness)).toBe(before);
    });

    test('a name that is still to be generated does not confuse', async () => {
      const draft = objectOf(
        'VirtualKey',
        { ...GOOD.VirtualKey, keyAlias: 'generated' },
        { name: undefined, generateName: 'gen-' },
      );
      const { code, stdout } = await harness.kubectl(['create', '-f', '-'], JSON.stringify(draft));
      expect(code).toBe(0);
      expect(stdout).toMatch(/virtualkey\.auth\.gateway-operator\.dev\/gen-\w+ created/);
      const bad = await harness.kubectl(
        ['create', '-f', '-'],
        JSON.stringify({ ...draft, spec: { ...GOOD.VirtualKey, maxBudget: 'x', keyAlias: '' } }),
      );
      expect(bad.stderr).toContain('VirtualKey is invalid:');
    });

    // The embedded cluster lets everybody do everything, and says so.
    if (name === 'real') {
      test('a user who may not read Secrets learns nothing about them', async () => {
        await harness.kubectl([
          'create',
          'clusterrole',
          'instances',
          '--verb=create,get,patch',
          '--resource=gatewayinstances.instance.gateway-operator.dev',
        ]);
        await harness.kubectl([
          'create',
          'clusterrolebinding',
          'instances',
          '--clusterrole=instances',
          '--user=mallory',
        ]);
        const at = (nameRef: string) =>
          objectOf(
            'GatewayInstance',
            {
              ...GOOD.GatewayInstance,
              models: [],
              databaseSecretRef: { ...GOOD.GatewayInstance.databaseSecretRef, nameRef },
            },
            { name: 'probe' },
          );
        const ask = async (nameRef: string) =>
          (await harness.kubectl(['create', '--as=mallory', '-f', '-'], JSON.stringify(at(nameRef)))).stderr;
        await eventually(
          () => ask('database'),
          (message) => message.includes('denied the request'),
        );
        expect((await ask('database')).replaceAll('database"', 'nowhere"')).toBe(await ask('nowhere'));
      });
    }

    test('with the function down nothing unjudged gets in, and everything can be deleted', async () => {
      const held = objectOf(
        'VirtualKey',
        { ...GOOD.VirtualKey, keyAlias: 'held' },
        { name: 'held', finalizers: [FINALIZER] },
      );
      expect((await apply([held])).code).toBe(0);
      const up = await harness.down();
      const refused = await apply([objectOf('VirtualKey', { ...GOOD.VirtualKey, keyAlias: 'late' }, { name: 'late' })]);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain('failed calling webhook');
      expect((await harness.kubectl(['delete', 'vk', '-n', 'team-a', 'old'])).code).toBe(0);
      expect((await harness.kubectl(['delete', 'vk', '-n', 'team-a', 'held', '--wait=false'])).code).toBe(0);
      expect(
        await harness.cluster.patch(virtualKeys, 'team-a', 'held', { metadata: { finalizers: null } }),
      ).toMatchObject({
        ok: true,
      });
      expect(await harness.cluster.get(virtualKeys, 'team-a', 'held')).toBeUndefined();
      await up();
      await eventually(
        () => apply([objectOf('VirtualKey', { ...GOOD.VirtualKey, keyAlias: 'late' }, { name: 'late' })]),
        ({ code }) => code === 0,
      );
    });

    test('an instance that is being deleted takes no new keys, and goes', async () => {
      const instance = await harness.cluster.create(
        gatewayInstances,
        objectOf('GatewayInstance', GOOD.GatewayInstance, {
          name: 'going',
          finalizers: [FINALIZER],
          namespace: 'platform',
        }),
      );
      expect(instance).toMatchObject({ ok: true });
      await harness.kubectl(['delete', 'gwi', '-n', 'platform', 'going', '--wait=false']);
      const spec = {
        ...GOOD.VirtualKey,
        userRef: undefined,
        teamRef: undefined,
        keyAlias: 'x',
        connectionRef: { instanceRef: { name: 'going', namespace: 'platform' } },
      };
      expect((await apply([objectOf('VirtualKey', spec, { name: 'x' })])).stderr).toContain(
        'spec.connectionRef.instanceRef: Invalid value: "platform/going": this GatewayInstance is being deleted',
      );
      expect(
        await harness.cluster.patch(gatewayInstances, 'platform', 'going', { metadata: { finalizers: null } }),
      ).toMatchObject({ ok: true });
      expect(await harness.cluster.list(RESOURCES.secrets, { namespace: 'platform' })).toHaveLength(4);
    });
  });
}

/** How many reviews there were, once nothing more is told of them: what a Worker prints comes later than its answer. */
async function counted({ reviewed }: Harness): Promise<number> {
  for (let before = reviewed(); ; before = reviewed()) {
    await pause(500);
    if (reviewed() === before) return before;
  }
}
