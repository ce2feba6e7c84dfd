// Does plain Kubernetes take our YAML, and do the functions work there with no more rights than it gives them?
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { CATEGORY } from '#crds/names/group.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { toKubeconfig } from '../../infra/platforms/local/cluster/kubeconfig.ts';
import { run } from '../support/child.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type LeakDetector, openLeakDetector } from '../support/secret-leak-detector.ts';
import { linkBundles, type SharedPostgres, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { deskIn, documented, type } from './documented.ts';
import {
  allPrinted,
  type NodeProcess,
  RECONCILE_TOKEN,
  type Resync,
  runNode,
  startNode,
  startReconcile,
} from './node-process.ts';
import { documentsOf, sampleFor } from './world.ts';

const why = whyNoControlPlane();
const INSTALL = 'infra/platforms/kubernetes/install.yaml';
/** What reconcile makes for an instance, word for word. */
const GATEWAY = 'test/reconcile/golden/deployment.golden.yaml';

describeUnless(why, 'plain Kubernetes', () => {
  let server: TestControlPlane;
  let postgres: SharedPostgres;
  let cluster: Cluster;
  let folder: string;
  let sample: ReadonlyArray<KubeObject>;
  let detector: LeakDetector;
  const closing: Array<() => Promise<unknown>> = [];

  beforeAll(async () => {
    folder = temporaryFolder();
    [server, postgres] = await Promise.all([startControlPlane(), sharedPostgres()]);
    detector = await openLeakDetector(server.kubeconfig);
    closing.push(detector.stop);
    const transport = await createKubeconfigTransport(server.kubeconfig);
    closing.push(transport.close);
    cluster = createCluster({ request: transport.request });
    // Nobody calls this upstream here.
    sample = sampleFor(await postgres.createDatabase(), 'http://127.0.0.1:9');
    await linkBundles(folder);
  });
  afterAll(async () => {
    await Promise.all(closing.map((close) => close()));
    await server?.stop();
  });

  const kubectl = async (args: string[], stdin?: string) => {
    const { code, stdout, stderr } = await run('kubectl', args, { KUBECONFIG: server.kubeconfig }, stdin);
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };
  /** A kubeconfig of this service account, with no more rights than it has. */
  const accountOf = async (name: string) => {
    const token = (await kubectl(['-n', 'gateway-operator', 'create', 'token', name])).trim();
    const file = join(folder, `${name}.kubeconfig`);
    writeFileSync(file, toKubeconfig({ url: server.url, ca: server.ca, token }));
    return file;
  };
  const may = async (account: string, verb: string, resource: string) => {
    const as = `system:serviceaccount:gateway-operator:${account}`;
    const words = ['auth', 'can-i', verb, resource, '--all-namespaces', `--as=${as}`];
    const { stdout } = await run('kubectl', words, { KUBECONFIG: server.kubeconfig });
    return stdout.trim();
  };

  test('takes every document of our YAML, in the order of docs/install/kubernetes.md, word for word', async () => {
    const desk = deskIn(folder);
    const output: string[] = [];
    for (const step of ['kinds', 'functions']) {
      output.push(await type(documented('docs/install/kubernetes.md', step), desk, server.kubeconfig));
    }
    const documents = documentsOf(INSTALL).length;
    expect(output.join('').match(/ created$/gm)?.length).toBe(documents + 5); // the CRDs, the Secret
    // Nothing in it is left to a default that an older server reads otherwise: applying it again changes nothing.
    const again = await kubectl(['apply', '-f', join(desk, INSTALL)]);
    // Of a disruption budget kubectl says "configured" each time: it replaces the selector by itself.
    expect(again.replace(/^.* unchanged\n|^poddisruptionbudget.*\n/gm, '')).toBe('');
  });

  test('the Pods are ones that a namespace with the restricted profile admits', async () => {
    const files = [
      INSTALL,
      'infra/platforms/kubernetes/uninstall.yaml',
      'infra/packaging/quickstart/quickstart.yaml',
      GATEWAY,
    ];
    const templates = files.flatMap(documentsOf).flatMap(podTemplateOf);
    expect(templates).toHaveLength(9);
    // A controller makes the first elsewhere, uninstall.yaml and quickstart.yaml the others.
    for (const name of ['default', 'uninstall', 'quickstart'])
      await kubectl(['-n', 'gateway-operator', 'create', 'serviceaccount', name]);
    const make = async (metadata: object, spec: object) => {
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'probe' }, spec };
      const { code, body } = await server.call('POST', '/api/v1/namespaces/gateway-operator/pods?dryRun=All', pod);
      return `${code} ${(body as { message?: string }).message ?? ''}`;
    };
    for (const { metadata, spec } of templates) {
      expect(await make(metadata, spec)).toBe('201 ');
      expect(await make(metadata, { ...spec, hostNetwork: true })).toContain('violates PodSecurity');
    }
  });

  test('one reconcile runs at a time: an update starts when its predecessor has ended, and a resync when the previous one has', () => {
    const operator = documentsOf(INSTALL);
    const named = (kind: string) => operator.find((one) => one.kind === kind && one.metadata.name === 'reconcile');
    expect(named('Deployment')?.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(named('CronJob')?.spec).toMatchObject({ schedule: '* * * * *', concurrencyPolicy: 'Forbid' });
  });

  test('a drain never takes both Pods of admission, which are put on two nodes where there are two', () => {
    const operator = documentsOf(INSTALL);
    const admission = operator.find((one) => one.kind === 'Deployment' && one.metadata.name === 'admission');
    const budget = operator.find((one) => one.kind === 'PodDisruptionBudget');
    const selector = { matchLabels: { 'app.kubernetes.io/name': 'admission' } };
    expect(budget?.spec).toEqual({ maxUnavailable: 1, selector });
    const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' };
    const topologySpreadConstraints = [{ ...spread, labelSelector: selector }];
    expect(admission?.spec).toMatchObject({ replicas: 2, selector, template: { spec: { topologySpreadConstraints } } });
  });

  test('takes the network policies that are offered', async () => {
    const file = readFileSync('infra/platforms/kubernetes/network-policy.yaml', 'utf8').replaceAll(
      '<POD_CIDR>',
      '10.244.0.0/16',
    );
    const output = await kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], file);
    expect(output.match(/ created \(server dry run\)$/gm)).toHaveLength(2);
  });

  test.each([
    ['admission', 'list', 'secrets', 'no'],
    ['admission', 'get', 'secrets', 'yes'],
    ['admission', 'patch', 'virtualkeys.auth.gateway-operator.dev', 'no'],
    ['reconcile', 'list', 'secrets', 'no'],
    ['reconcile', 'watch', 'secrets', 'no'],
    ['reconcile', 'watch', 'virtualkeys.auth.gateway-operator.dev', 'no'],
    ['reconcile', 'get', 'leases', 'no'],
    ['reconcile', 'patch', 'secrets', 'yes'],
    ['reconcile', 'delete', 'users.auth.gateway-operator.dev', 'no'],
    ['reconcile', 'create', 'pods', 'no'],
    ['reconcile', 'patch', 'mutatingwebhookconfigurations/gateway-operator', 'yes'],
    ['reconcile', 'patch', 'mutatingwebhookconfigurations/other', 'no'],
    ['reconcile', 'list', 'validatingwebhookconfigurations', 'no'],
  ])('%s: may it %s %s? %s', async (account, verb, resource, answer) => {
    expect(await may(account, verb, resource)).toBe(answer);
  });

  describe('with the rights of their service accounts', () => {
    let admission: NodeProcess;
    let reconcile: NodeProcess;
    beforeAll(async () => {
      const desk = join(folder, 'desk');
      const shared = await cluster.get(RESOURCES.secrets, 'gateway-operator', 'gateway-operator');
      const { 'admission-path': encoded = '' } = (shared?.data ?? {}) as Record<string, string>;
      const path = Buffer.from(encoded, 'base64').toString();
      reconcile = await startReconcile(join(folder, 'node/reconcile.mjs'), {
        KUBECONFIG: await accountOf('reconcile'),
        GATEWAY_PROCESSES: 'one',
        ADMISSION_SERVICE: 'gateway-operator/admission',
        PATH_SECRETS: path,
      });
      closing.push(() => reconcile.stop());
      // The first run issues the certificate that admission waits for, and has both configurations trust it; the
      // kubelet mounts it.
      const { failed, certificate } = await resync();
      expect(failed).toEqual({});
      expect(certificate?.actions.filter((action) => action === 'TrustAuthorities')).toHaveLength(2);
      const secret = await cluster.get(RESOURCES.secrets, 'gateway-operator', 'admission-tls');
      const data = (secret?.data ?? {}) as Record<string, string>;
      for (const entry of ['tls.crt', 'tls.key'])
        writeFileSync(join(desk, entry), Buffer.from(data[entry] ?? '', 'base64'));
      admission = await startNode(join(folder, 'node/admission.mjs'), {
        KUBECONFIG: await accountOf('admission'),
        PATH_SECRETS: path,
        OWN_USERS: 'system:serviceaccount:gateway-operator:reconcile',
        RECONCILE_URL: reconcile.url,
        RECONCILE_TOKEN,
        TLS_CERT_FILE: join(desk, 'tls.crt'),
        TLS_KEY_FILE: join(desk, 'tls.key'),
      });
      closing.push(() => admission.stop());
      await pointServiceAt(new URL(admission.url).port);
    });

    /** No kube-proxy runs here: an ExternalName is resolved by the API server itself. */
    const pointServiceAt = async (port: string) => {
      await kubectl(['-n', 'gateway-operator', 'delete', 'service', 'admission']);
      await kubectl(
        ['apply', '-f', '-'],
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'admission', namespace: 'gateway-operator' },
          spec: { type: 'ExternalName', externalName: 'localhost' },
        }),
      );
      for (const [kind, entries] of [
        ['mutating', [0]],
        ['validating', [0, 1]],
      ] as const) {
        const path = (entry: number) => `/webhooks/${entry}/clientConfig/service/port`;
        const patch = entries.map((entry) => ({ op: 'replace', path: path(entry), value: Number(port) }));
        const words = ['patch', `${kind}webhookconfiguration`, 'gateway-operator', '--type=json', '-p'];
        await kubectl([...words, JSON.stringify(patch)]);
      }
    };
    /** What the CronJob does. */
    const resync = async () => {
      const environment = { RECONCILE_URL: reconcile.url, RECONCILE_TOKEN };
      const { code, stdout, stderr } = await runNode(join(folder, 'node/trigger.mjs'), [], environment);
      expect(`${code} ${stderr}`).toBe('0 ');
      return JSON.parse(stdout) as Resync;
    };
    const statusOf = async (kind: string, name: string) =>
      (await cluster.get(resourceOf(kind), 'default', name))?.status as Record<string, unknown> | undefined;

    test('admission refuses a key of an instance that is not there, through the Service and its certificate', async () => {
      const key = sample.find(({ kind }) => kind === 'VirtualKey');
      const refused = () =>
        run('kubectl', ['apply', '-f', '-'], { KUBECONFIG: server.kubeconfig }, JSON.stringify(key));
      // Webhook configurations are in force a moment after they are written.
      const { stderr } = await eventually(refused, ({ stderr }) => stderr.includes('denied the request'));
      expect(stderr).toContain('validate.gateway-operator.dev');
      expect(stderr).toMatch(/no GatewayInstance|does not exist|not there/);
      expect(stderr).toContain('sample');
    });

    test('the check of the installation finds that admission answers', async () => {
      const environment = { KUBECONFIG: server.kubeconfig, CHECK_NAMESPACE: 'gateway-operator' };
      const { code, stdout, stderr } = await runNode(join(folder, 'node/check.mjs'), [], environment);
      expect(`${code} ${stderr}`).toBe('0 ');
      expect(stdout).toMatch(/^admission answers: .*give each its own Secret/);
    });

    test('the first gateway of docs/install/first-gateway.md is admitted as it is there', async () => {
      const text = documented('docs/install/first-gateway.md', 'first gateway');
      const desk = join(folder, 'desk');
      const output = await type(text, desk, server.kubeconfig);
      expect(output.match(/ created$/gm)).toHaveLength(5);
      // What reconcile has seen of them meanwhile goes with what follows.
      const deleted = await type(text.replace('kubectl apply', 'kubectl delete --wait=false'), desk, server.kubeconfig);
      expect(deleted.match(/ deleted$/gm)).toHaveLength(5);
    });

    test('the sample is admitted; one run of reconcile makes it ready and mints its keys, another writes nothing', async () => {
      await kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: sample }));
      expect((await resync()).failed).toEqual({});
      expect(await statusOf('VirtualKey', 'example-service')).toMatchObject({ isActive: true });
      expect(await statusOf('VirtualKey', 'alice')).toMatchObject({ isActive: true });
      expect(detector.values.size).toBeGreaterThanOrEqual(4);
      expect(await detector.search(allPrinted()), 'keys and passwords that are shown').toEqual([]);
      const instance = await statusOf('GatewayInstance', 'sample');
      const map = await cluster.get(RESOURCES.configMaps, 'default', `sample-${instance?.snapshotHash}`);
      expect(map).toMatchObject({ immutable: true });
      const before = await cluster.list(virtualKeys);
      expect((await resync()).failed).toEqual({});
      expect(await cluster.list(virtualKeys)).toEqual(before);
    });

    const conditionOf = async (name: string, type: string) =>
      ((await statusOf('GatewayInstance', name))?.conditions as Array<Record<string, string>> | undefined)?.find(
        (one) => one.type === type,
      )?.status;

    test('a gateway is ready a few seconds after its Pods are, without a resync: the trigger of its instance is repeated', async () => {
      const own = sample.find(({ kind }) => kind === 'GatewayInstance');
      const deployed = {
        ...own,
        metadata: { name: 'deployed', namespace: 'default' },
        spec: { ...(own?.spec as object), workload: { type: 'Deployment' } },
      };
      await kubectl(['apply', '-f', '-'], JSON.stringify(deployed));
      await eventually(
        () => conditionOf('deployed', 'WorkloadReady'),
        (output) => output === 'False',
      );
      const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
      const status = { observedGeneration: 1, ...counts, conditions: [{ type: 'Available', status: 'True' }] };
      await cluster.patch(WORKLOAD_OBJECTS.Deployment, 'default', 'deployed-gateway', { status }, 'status');
      await eventually(
        () => conditionOf('deployed', 'WorkloadReady'),
        (output) => output === 'True',
      );
    });

    test('a key works and a deleted one is gone without a resync', async () => {
      const own = sample.find(({ kind }) => kind === 'VirtualKey');
      const triggered = {
        ...own,
        metadata: { name: 'triggered', namespace: 'default' },
        spec: { ...(own?.spec as object), keyAlias: 'triggered' },
      };
      await kubectl(['apply', '-f', '-'], JSON.stringify(triggered));
      await eventually(
        () => statusOf('VirtualKey', 'triggered'),
        (status) => status?.isActive === true,
      );
      await kubectl(['delete', 'vk', 'triggered', '--timeout=30s']);
      expect(await cluster.get(RESOURCES.secrets, 'default', 'triggered-key')).toBeUndefined();
    });

    test('a lost and an edited key are repaired; then everything is deleted, and nothing is left', async () => {
      await kubectl(['delete', 'secret', 'example-service-key']);
      await kubectl(['patch', 'secret', 'alice-key', '--type=merge', '-p', '{"data":{"key":"Zm9yZ2Vk"}}']);
      expect((await resync()).failed).toEqual({});
      expect(await statusOf('VirtualKey', 'example-service')).toMatchObject({ isActive: true });
      await kubectl(['patch', 'gwuser', 'alice', '--type=merge', '-p', '{"spec":{"autoCreateKey":false}}']);
      expect((await resync()).failed).toEqual({});
      expect(await statusOf('VirtualKey', 'alice')).toBeUndefined();
      const models = sample.find(({ kind }) => kind === 'GatewayInstance')?.spec as { models: unknown[] };
      const patch = JSON.stringify({ spec: { models: models.models.slice(0, 1) } });
      await kubectl(['patch', 'vk', 'example-service', '--type=merge', '-p', '{"spec":{"models":["sample-small"]}}']);
      await kubectl(['patch', 'gwi', 'sample', '--type=merge', '-p', patch]);
      expect((await resync()).failed).toEqual({});
      await kubectl(['delete', '--wait=false', 'vk,gwuser,gwteam,gwi', '--all']);
      expect((await resync()).failed).toEqual({});
      expect(await kubectl(['get', CATEGORY, '-A', '-o', 'name'])).toBe('');
      const left = await kubectl(['get', 'secrets', '-l', 'gateway-operator.dev/managed=true', '-o', 'name']);
      expect(left).toBe('');
      expect(await detector.search(allPrinted()), 'keys and passwords that are shown').toEqual([]);
    });
  });
});

interface PodTemplate {
  readonly metadata: object;
  readonly spec: Readonly<Record<string, unknown>>;
}

function podTemplateOf({ kind, spec }: KubeObject): PodTemplate[] {
  type Holder = { readonly template?: PodTemplate; readonly jobTemplate?: { readonly spec: Holder } };
  const holder = (kind === 'CronJob' ? (spec as Holder).jobTemplate?.spec : (spec as Holder)) ?? {};
  return holder.template === undefined ? [] : [{ ...holder.template, metadata: holder.template.metadata ?? {} }];
}
