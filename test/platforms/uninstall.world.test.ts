// Removing the operator, in the order of docs/install/uninstall.md and in naive ones: nothing sticks, and nothing is
// left to be found by hand. CI has the documented order and two others; `npm run campaigns` has all.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { kinds, virtualKeys } from '#crds/kinds/kinds.ts';
import { applyKinds } from '../../infra/packaging/manifests/apply.ts';
import { IN_CLUSTER, webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { removeOperator } from '../../infra/platforms/kubernetes/remove-operator.ts';
import { toKubeconfig } from '../../infra/platforms/local/cluster/kubeconfig.ts';
import { run } from '../support/child.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless, named, testUnless, whyNoCampaign } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { documented, type } from './documented.ts';
import { runNode, startReconcile } from './node-process.ts';
import { apply, sampleFor } from './world.ts';

const ROOT = join(import.meta.dirname, '../..');
const OWN_IMAGE = 'registry.own.example.com/team/gateway-operator:9';

describeUnless(whyNoControlPlane(), 'the operator', () => {
  let server: TestControlPlane;
  let admin: Cluster;
  let folder: string;
  let database: DatabaseConnection;
  const closing: Array<() => Promise<unknown>> = [];

  beforeAll(async () => {
    folder = temporaryFolder();
    server = await startControlPlane({ controllers: ['namespace-controller'] });
    const postgres = await sharedPostgres();
    database = await postgres.createDatabase();
    await linkBundles(folder);
    admin = await open(server.kubeconfig);
  });
  afterAll(async () => {
    for (const close of closing) await close();
    await server?.stop();
  });

  const open = async (kubeconfig: string) => {
    const transport = await createKubeconfigTransport(kubeconfig);
    closing.push(transport.close);
    return createCluster({ request: transport.request });
  };
  const kubectl = async (args: string[], stdin?: string) => {
    const { code, stdout, stderr } = await run('kubectl', args, { KUBECONFIG: server.kubeconfig }, stdin);
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };
  /** With no more rights than the account has. */
  const accountOf = async (name: string) => {
    const token = (await kubectl(['-n', 'gateway-operator', 'create', 'token', name])).trim();
    const file = join(folder, `${name}.kubeconfig`);
    writeFileSync(file, toKubeconfig({ url: server.url, ca: server.ca, token }));
    return file;
  };
  const names = (kind: string) => kubectl(['get', kind, '-A', '-o', 'name']);

  /** Kinds, rights, webhooks that nobody answers, the sample with its keys, and a reconcile that has seen it all. */
  const install = async () => {
    await applyKinds(admin);
    await kubectl([
      'apply',
      '-f',
      'infra/platforms/kubernetes/access.yaml',
      '-f',
      'infra/platforms/kubernetes/uninstall.yaml',
    ]);
    await apply(admin, sampleFor(database, 'http://127.0.0.1:9'));
    const reconcile = await startReconcile(join(folder, 'node/reconcile.mjs'), {
      KUBECONFIG: await accountOf('reconcile'),
      GATEWAY_PROCESSES: 'one',
    });
    expect((await reconcile.ask()).status).toBe(200);
    for (const hook of webhookConfigurations(IN_CLUSTER)) await kubectl(['apply', '-f', '-'], JSON.stringify(hook));
    return reconcile;
  };

  test('in the documented order it cleans up behind everything first: keys stop working, their Secrets go', async () => {
    const reconcile = await install();
    expect((await names('virtualkeys')).split('\n').filter(Boolean)).toHaveLength(2);
    const output: string[] = [];
    let isOver = false;
    const schedule = (async () => {
      for (; !isOver; await pause(500)) await reconcile.ask();
    })();
    const cluster = await open(await accountOf('uninstall'));
    await removeOperator({ cluster, print: (line) => output.push(line), now: Date.now, pause }, 'Delete');
    isOver = true;
    await schedule;
    expect(await reconcile.stop()).toBe(0);
    expect(output.filter((line) => line.startsWith('released'))).toEqual([]);
    expect(output.at(-1)).toContain('Delete its manifests');
    for (const kind of kinds) expect(await admin.list(kind)).toEqual([]);
    expect(await names('mutatingwebhookconfigurations')).toBe('');
    expect(await names('validatingwebhookconfigurations')).toBe('');
    expect(await admin.get(RESOURCES.secrets, 'default', 'example-service-key')).toBeUndefined();
    // What is left are manifests.
    await kubectl(['delete', '-f', 'crds/manifests', '--timeout=60s']);
  });

  testUnless(
    whyNoCampaign,
    'after the operator and half of the kinds were deleted it releases what sticks, and repeating it is harmless',
    async () => {
      const reconcile = await install();
      expect(await reconcile.stop('SIGKILL')).toBe(null);
      await kubectl(['delete', 'clusterrolebinding', 'gateway-operator-reconcile']);
      const annotate = () =>
        run('kubectl', ['annotate', 'vk', 'example-service', 'a=b', '--overwrite'], { KUBECONFIG: server.kubeconfig });
      await eventually(annotate, ({ stderr }) => stderr.includes('failed calling webhook'));
      await kubectl(['delete', '-f', 'crds/manifests', '--wait=false']);
      expect((await admin.list(virtualKeys)).length).toBe(2);
      const output: string[] = [];
      let millis = 0;
      const waits = async () => {
        millis += 10_000;
      };
      const cluster = await open(await accountOf('uninstall'));
      await removeOperator({ cluster, print: (line) => output.push(line), now: () => millis, pause: waits }, 'Delete');
      expect(output.filter((line) => line.startsWith('released')).length).toBeGreaterThanOrEqual(3);
      expect(await names('validatingwebhookconfigurations')).toBe('');
      const ours = async () => (await kubectl(['get', 'crd', '-o', 'name'])).match(/gateway-operator\.dev/g) ?? [];
      expect(await eventually(ours, (left) => left.length === 0)).toEqual([]);
      // As a program, with nothing left to do and no kinds at all.
      const { code, stdout } = await runNode(join(folder, 'node/uninstall.mjs'), [], {
        KUBECONFIG: join(folder, 'uninstall.kubeconfig'),
      });
      expect([code, stdout]).toEqual([
        0,
        expect.stringContaining('No webhook and no finalizer of the operator is left'),
      ]);
    },
  );

  /** The Job as a program, with the rights of its account; no 90 seconds pass where nobody cleans up. */
  const removes = async (objects: 'Keep' | 'Delete') => {
    const page = documented('docs/install/uninstall.md', 'uninstall Job').replace(/(?<=^IMAGE=)\S+/, OWN_IMAGE);
    // The page has the Job for `Delete`; the chart runs it for `Keep`.
    const keep = objects === 'Keep' ? ';s#value: Delete#value: Keep#' : '';
    await type(page.replace('$IMAGE#', `$&${keep}`), ROOT, server.kubeconfig);
    const [image, value] = ['image', 'env[*].value'].map((field) => `{.spec.template.spec.containers[*].${field}}`);
    const job = ['-n', 'gateway-operator', 'get', 'job', 'uninstall', '-o', `jsonpath=${image} ${value}`];
    expect(await kubectl(job)).toBe(`${OWN_IMAGE} ${objects}`);
    const output: string[] = [];
    let millis = 0;
    const waits = async () => {
      millis += 10_000;
    };
    const cluster = await open(await accountOf('uninstall'));
    await removeOperator({ cluster, print: (line) => output.push(line), now: () => millis, pause: waits }, objects);
    return output;
  };
  const noNamespace = () => kubectl(['delete', 'namespace', 'gateway-operator', '--ignore-not-found', '--timeout=60s']);

  test.skipIf(whyNoCampaign !== undefined).each([
    ['its namespace', ['delete', 'namespace', 'gateway-operator']],
    ['the kinds', ['delete', '-f', 'infra/platforms/kubernetes/crds.yaml', '--wait=false']],
  ])(
    named('when %s went first the Job frees everything, and nothing is left to be found by hand', whyNoCampaign),
    async (_, first) => {
      await noNamespace();
      const reconcile = await install();
      expect(await reconcile.stop('SIGKILL')).toBe(null);
      await kubectl(first);
      // People who clean up get stuck here.
      await run('kubectl', ['delete', 'vk,gwuser,gwteam,gwi', '--all', '--wait=false'], {
        KUBECONFIG: server.kubeconfig,
      });
      await removes('Delete');
      const manifests = ['crds', 'install', 'uninstall'].flatMap((name) => [
        '-f',
        `infra/platforms/kubernetes/${name}.yaml`,
      ]);
      await kubectl(['delete', '--ignore-not-found', '--wait=false', ...manifests]);
      const everything =
        'clusterroles,clusterrolebindings,crd,mutatingwebhookconfigurations,validatingwebhookconfigurations';
      const left = () => kubectl(['get', everything, '-o', 'name']);
      expect(await eventually(left, (names) => !names.includes('gateway-'))).not.toContain('gateway-');
    },
  );

  test('when its manifests went first, one command of the page frees a namespace that waits for finalizers', async () => {
    await noNamespace();
    const reconcile = await install();
    expect(await reconcile.stop()).toBe(0);
    await kubectl(['delete', '-f', 'infra/platforms/kubernetes/install.yaml', '--ignore-not-found', '--timeout=60s']);
    await kubectl(['create', 'namespace', 'team-a']);
    const [key] = await admin.list(virtualKeys);
    const { finalizers } = key?.metadata ?? expect.fail('there is no key');
    const metadata = { name: 'theirs', namespace: 'team-a', finalizers };
    await kubectl(['create', '-f', '-'], JSON.stringify({ ...key, metadata, status: undefined }));
    await kubectl(['delete', 'namespace', 'team-a', '--wait=false']);
    const messages = () => kubectl(['get', 'namespace', 'team-a', '-o', 'jsonpath={.status.conditions[*].message}']);
    await eventually(messages, (output) => output.includes('finalizers remaining: gateway-operator.dev/cleanup'));
    await type(documented('docs/install/uninstall.md', 'free'), ROOT, server.kubeconfig);
    await kubectl(['wait', '--for=delete', 'namespace/team-a', '--timeout=30s']);
    for (const { metadata } of await admin.list(virtualKeys)) expect(metadata.finalizers).toBeUndefined();
    await kubectl(['delete', 'vk,gwuser,gwteam,gwi', '--all', '--all-namespaces', '--timeout=30s']);
  });

  test('people keep their objects where they ask for it: no finalizer holds any, and each can be deleted by hand', async () => {
    await noNamespace();
    const reconcile = await install();
    expect(await reconcile.stop()).toBe(0);
    const before = await names('vk,gwuser,gwteam,gwi');
    const output = await removes('Keep');
    expect(output.filter((line) => line.startsWith('released')).length).toBeGreaterThanOrEqual(3);
    expect(output.join()).not.toContain('nothing was cleaned up');
    expect(await names('vk,gwuser,gwteam,gwi')).toBe(before);
    for (const kind of kinds)
      for (const { metadata } of await admin.list(kind)) expect(metadata.finalizers).toBeUndefined();
    const [key] = await admin.list(virtualKeys);
    const held = { metadata: { finalizers: ['gateway-operator.dev/cleanup'] } };
    await admin.patch(virtualKeys, key?.metadata.namespace ?? '', key?.metadata.name ?? '', held);
    // The same by the plugin, from a person's machine.
    const plugin = documented('docs/install/uninstall.md', 'plugin').replace('/usr/local/bin', folder);
    await type(plugin, ROOT, server.kubeconfig);
    const environment = { KUBECONFIG: server.kubeconfig, PATH: `${folder}:${process.env.PATH}` };
    const { stdout } = await run('kubectl', ['gateway', 'uninstall'], environment);
    expect(stdout).toContain(`released VirtualKey default/${key?.metadata.name}\n`);
    expect(stdout).toContain('No webhook and no finalizer of the operator is left in this cluster');
    await kubectl(['delete', 'vk,gwuser,gwteam,gwi', '--all', '--timeout=30s']);
  });
});
