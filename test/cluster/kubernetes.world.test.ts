// The promises of the Cluster port on a real API server, over each of our transports.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCluster, type KubeTransport } from '#adapters/kubernetes/cluster.ts';
import { createFetchTransport } from '#adapters/kubernetes/fetch.ts';
import { createKubeconfigTransport, createServiceAccountTransport } from '#adapters/kubernetes/node.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { describeCluster } from '#core/ports/test/cluster.promises.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { installCustomResources } from './custom-resources.ts';

const why = whyNoControlPlane();

describeUnless(why, 'a real API server', () => {
  let server: TestControlPlane;
  let folder: string;
  const closing: Array<() => Promise<void>> = [];

  beforeAll(async () => {
    server = await startControlPlane();
    folder = mkdtempSync(join(tmpdir(), 'transports-'));
    await installCustomResources(server);
  });
  afterAll(async () => {
    await Promise.all(closing.map((close) => close()));
    await server?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  const transports: Record<string, () => Promise<KubeTransport>> = {
    'a kubeconfig': async () => {
      const { request, close } = await createKubeconfigTransport(server.kubeconfig);
      closing.push(close);
      return request;
    },
    'a service account': async () => {
      writeFileSync(join(folder, 'token'), server.token);
      writeFileSync(join(folder, 'ca.crt'), server.ca);
      const { request, close } = createServiceAccountTransport({ address: server.url, folder });
      closing.push(close);
      return request;
    },
    'fetch and a token': async () => {
      const dispatcher = new Agent({ connect: { ca: server.ca } });
      closing.push(() => dispatcher.close());
      // undici's own fetch is the global one with a certificate authority of our choice.
      const trusting = ((url: string, init: object) =>
        fetch(url, { ...init, dispatcher })) as unknown as typeof globalThis.fetch;
      return createFetchTransport({ address: server.url, token: server.token, fetch: trusting });
    },
  };

  for (const [name, open] of Object.entries(transports)) {
    describeCluster(`reached with ${name}`, async () => {
      const cluster = createCluster({ request: await open() });
      const namespace = name.replaceAll(' ', '-');
      await cluster.create(RESOURCES.namespaces, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: namespace },
      });
      return { cluster, namespace };
    });
  }

  test('a user without rights may not read a Secret, one with a role may', async () => {
    const cluster = createCluster({ request: await (transports['a kubeconfig'] as () => Promise<KubeTransport>)() });
    const may = (username: string) =>
      cluster.may({ username, groups: ['system:authenticated'] }, 'get', RESOURCES.secrets, 'default', 'x');
    expect(await may('nobody')).toBe(false);
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
    const rules = [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['x'], verbs: ['get'] }];
    await server.call('POST', `${rbac}/roles`, { metadata: { name: 'reader' }, rules });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' };
    await server.call('POST', `${rbac}/rolebindings`, {
      metadata: { name: 'reader' },
      roleRef,
      subjects: [{ kind: 'User', name: 'ada' }],
    });
    await expect.poll(() => may('ada')).toBe(true);
  });
});
