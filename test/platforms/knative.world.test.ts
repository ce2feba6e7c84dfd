// Do Knative's own webhooks and controller take our YAML, with real rights behind it?
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, type NodeTransport } from '#adapters/kubernetes/node.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import { createHarness, type Harness } from '../reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../reconcile/objects.ts';
import { run } from '../support/child.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type KnativeControlPlane, runScript, startKnative } from '../support/knative.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { documentsOf } from './world.ts';

const TEST_KIT = process.env.GATEWAY_OPERATOR_ENVTEST_KIT ?? '';
const why = whyNoControlPlane() ?? whyNoKnative();
const documents = documentsOf('infra/platforms/knative/operator.yaml');

describeUnless(why, 'Knative', () => {
  let knative: KnativeControlPlane;
  let kubeconfig: string;

  beforeAll(async () => {
    knative = await startKnative(temporaryFolder(), 'bare');
    kubeconfig = knative.kubeconfig;
    await kubectl('apply', '-f', 'crds/manifests', '-f', 'infra/platforms/kubernetes/access.yaml');
    await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
  }, 120_000);
  afterAll(() => knative?.stop(), 30_000);

  const kubectl = async (...args: string[]) => {
    const { code, stdout, stderr } = await run('kubectl', args, { KUBECONFIG: kubeconfig });
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };
  /** What is said about a document that is applied but not kept. */
  const judge = async (document: object) => {
    const words = ['apply', '--dry-run=server', '--validate=strict', '-f', '-'];
    const { stdout, stderr } = await run('kubectl', words, { KUBECONFIG: kubeconfig }, JSON.stringify(document));
    return `${stdout}${stderr}`;
  };
  const get = async (kind: string, name: string) =>
    JSON.parse(await kubectl('-n', 'gateway-operator', 'get', kind, name, '-o', 'json')) as KubeObject & {
      spec: Record<string, unknown>;
      status?: { conditions?: ReadonlyArray<Record<string, string>> };
    };

  test('takes every document of our YAML, without a warning', async () => {
    const output = await kubectl('apply', '--validate=strict', '-f', 'infra/platforms/knative/operator.yaml');
    expect(output.match(/ created$/gm)).toHaveLength(documents.length);
  });

  test("Serving's webhook has filled in its defaults: it has seen them", async () => {
    const { metadata } = await get('ksvc', 'reconcile');
    expect(metadata.annotations).toHaveProperty('serving.knative.dev/creator');
  });

  const change = (kind: string, name: string, patch: (spec: Record<string, unknown>) => object): object => {
    const document = documents.find((one) => one.kind === kind && one.metadata.name === name);
    const spec = structuredClone(document?.spec) as Record<string, unknown>;
    return { ...document, metadata: { ...document?.metadata, name: `${name}-changed` }, spec: patch(spec) };
  };
  type Template = { template: { spec: { containers: object[] } } };
  const container = (spec: Record<string, unknown>, more: object) => {
    const { template } = spec as unknown as Template;
    const containers = template.spec.containers.map((one) => ({ ...one, ...more }));
    return { ...spec, template: { ...template, spec: { ...template.spec, containers } } };
  };

  test.each([
    ['a Service with an image that is none', change('Service', 'admission', (spec) => container(spec, { image: 'x' }))],
    [
      'a Service with two ports',
      change('Service', 'admission', (spec) =>
        container(spec, { ports: [{ containerPort: 1 }, { containerPort: 2 }] }),
      ),
    ],
    [
      'a Service whose requests may take longer than Knative allows',
      change('Service', 'reconcile', (spec) => {
        const { template } = spec as unknown as Template;
        return { template: { spec: { ...template.spec, timeoutSeconds: 10_000 } } };
      }),
    ],
    ['a PingSource that never pings', change('PingSource', 'every-minute', (spec) => ({ ...spec, schedule: 'never' }))],
    ['an ApiServerSource without a mode', change('ApiServerSource', 'changes', (spec) => ({ ...spec, mode: 'x' }))],
  ])('refuses %s', async (_, document) => {
    expect(await judge(document)).toMatch(/denied the request|is invalid|Unsupported value/);
  });

  test('the source of triggers may watch our kinds: the controller asked with its account', async () => {
    // Nothing runs Services here: their address is what the test kit says.
    await runScript('knative.sh', knative.state, 'ready', 'gateway-operator/reconcile', 'http://127.0.0.1:9');
    const condition = async () =>
      (await get('apiserversource', 'changes')).status?.conditions?.find(
        ({ type }) => type === 'SufficientPermissions',
      );
    expect(await eventually(condition, (seen) => seen?.status === 'True')).toBeDefined();
    // It guesses plurals by spelling: a kind whose plural it gets wrong stops the source.
    const { spec } = await get('apiserversource', 'changes');
    const resources = spec.resources as object[];
    const key = { apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'VirtualKey' };
    const patch = (more: object[]) => JSON.stringify({ spec: { resources: [...resources, ...more] } });
    const words = ['-n', 'gateway-operator', 'patch', 'apiserversource', 'changes', '--type=merge', '-p'];
    await kubectl(...words, patch([key]));
    expect((await eventually(condition, (seen) => seen?.status === 'False'))?.message).toContain('virtualkeies');
    await kubectl(...words, patch([]));
    await eventually(condition, (seen) => seen?.status === 'True');
    await kubectl('delete', 'clusterrolebinding', 'gateway-operator-changes');
    await kubectl('-n', 'gateway-operator', 'annotate', 'apiserversource', 'changes', 'again=1');
    expect(await eventually(condition, (seen) => seen?.status === 'False')).toBeDefined();
  });

  describe('what reconcile makes for a gateway, with the rights of its account', () => {
    let harness: Harness;
    const transports: NodeTransport[] = [];
    const live = async () => {
      const found = await harness.get(WORKLOAD_OBJECTS.KnativeService, 'main-serving');
      return found as KubeObject & { spec: { template: { metadata: { annotations: object } } } };
    };
    const resync = async () => {
      const report = await harness.resync();
      expect(report.failed).toEqual({});
      return report.actions;
    };
    const edit = (workload: object) => harness.edit(gatewayInstances, 'main', { spec: { workload } });
    const conditionOf = async (type: string) =>
      (await harness.status(gatewayInstances, 'main')).conditions?.find((one) => one.type === type);

    beforeAll(async () => {
      const token = (await kubectl('-n', 'gateway-operator', 'create', 'token', 'reconcile')).trim();
      const own = join(knative.state, 'reconcile.kubeconfig');
      const text = readFileSync(kubeconfig, 'utf8').replace(
        /user: {client-certificate.*}}/,
        `user: {token: ${token}}}`,
      );
      writeFileSync(own, text);
      transports.push(await createKubeconfigTransport(kubeconfig), await createKubeconfigTransport(own));
      const [ours, reconciles] = transports.map(createCluster);
      if (ours === undefined || reconciles === undefined) throw new Error();
      harness = createHarness({ clusters: { ours, reconciles }, start: Date.now() });
      harness.servedAt = 'nobody';
      await harness.apply(...makeSecrets(), makeSecret('store', { host: 'redis', port: '6379', password: '' }));
      await harness.apply(makeInstance(), makeKey());
    });
    afterAll(async () => {
      for (const { close } of transports) await close();
    });

    test('Auto finds Knative, and its webhook takes the Service as it stands, without a warning', async () => {
      expect(await resync()).toMatchObject({ ApplyWorkload: 1 });
      const { metadata } = await live();
      expect(metadata.annotations).toMatchObject({
        'serving.knative.dev/creator': 'system:serviceaccount:gateway-operator:reconcile',
      });
      expect(await harness.status(gatewayInstances, 'main')).toMatchObject({ workloadType: 'Knative' });
      expect(await conditionOf('WorkloadReady')).toMatchObject({ status: 'False', reason: 'WorkloadNotReady' });
    });

    test('the Pods of it are ones that a namespace with the restricted profile admits', async () => {
      // A controller makes the first elsewhere.
      for (const name of ['default', 'gateway'])
        await kubectl('-n', 'gateway-operator', 'create', 'serviceaccount', name);
      for (const name of ['knative', 'knative-everything']) {
        for (const document of documentsOf(`test/reconcile/golden/${name}.golden.yaml`)) {
          const moved = {
            ...document,
            metadata: { ...document.metadata, name: 'judged', namespace: 'gateway-operator' },
          };
          expect(await judge(moved)).toBe('service.serving.knative.dev/judged created (server dry run)\n');
        }
      }
    });

    test('what the webhook fills in is not fought over: resyncs write nothing', async () => {
      const { metadata } = await live();
      for (let turn = 0; turn < 3; turn += 1) expect(await resync()).toEqual({});
      expect((await live()).metadata.resourceVersion).toBe(metadata.resourceVersion);
    });

    test('is ready, where Knative says, once Knative says so', async () => {
      await runScript('knative.sh', knative.state, 'ready', 'default/main-serving', 'http://main-serving.default.svc');
      await resync();
      expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
      expect(await harness.status(gatewayInstances, 'main')).toMatchObject({ url: 'http://main-serving.default.svc' });
      expect(await resync()).toEqual({});
    });

    test('each change is one write, its clearing one more, and what others added stays', async () => {
      const theirs = { annotations: { 'example.com/theirs': 'yes' } };
      await harness.edit(WORKLOAD_OBJECTS.KnativeService, 'main-serving', { metadata: theirs });
      const before = JSON.stringify((await live()).spec);
      for (const [field, value] of Object.entries({
        scale: { min: 1, max: 5 },
        resources: { requests: { cpu: '0.5' } },
        env: [{ name: 'LOG_LEVEL', value: 'warn' }],
        podAnnotations: { 'autoscaling.knative.dev/target': '50' },
        podLabels: { team: 'platform' },
        serviceAccountName: 'gateway',
        image: 'registry.example.com/own:1',
      })) {
        for (const next of [value, null]) {
          await edit({ [field]: next });
          expect(await resync()).toMatchObject({ ApplyWorkload: 1 });
          expect(await resync()).not.toHaveProperty('ApplyWorkload');
        }
        expect(JSON.stringify((await live()).spec)).toBe(before);
      }
      expect((await live()).metadata).toMatchObject(theirs);
    });

    test('no key and no password is in what Knative and reconcile made', async () => {
      expect(await harness.shown()).toEqual([]);
    });

    test('what the webhook refuses is told in its words, and is repaired by the next edit', async () => {
      await edit({ podAnnotations: { 'autoscaling.knative.dev/target': 'many' } });
      expect((await harness.resync()).failed).toEqual({ ApplyWorkload: 1 });
      const condition = await conditionOf('WorkloadReady');
      expect(condition?.message).toMatch(/autoscaling.knative.dev\/target|invalid value: many/);
      await edit({ podAnnotations: null });
      expect(await resync()).not.toHaveProperty('failed');
    });
  });
});

function whyNoKnative(): string | undefined {
  const folder = process.env.KUBEBUILDER_ASSETS ?? '';
  if (!existsSync(join(folder, 'knative/serving-webhook'))) return `no Knative in ${folder} (KUBEBUILDER_ASSETS)`;
  if (existsSync(join(TEST_KIT, 'start-knative.sh'))) return undefined;
  return TEST_KIT === ''
    ? 'GATEWAY_OPERATOR_ENVTEST_KIT is not set (a folder with start.sh and start-knative.sh)'
    : `no start-knative.sh in ${TEST_KIT} (GATEWAY_OPERATOR_ENVTEST_KIT)`;
}
