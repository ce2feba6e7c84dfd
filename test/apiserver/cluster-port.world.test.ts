// The promises of the Cluster port, on the embedded API server and a real one.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { describeCluster } from '#core/ports/test/cluster.promises.ts';
import { customResourceDefinitions } from '../../infra/packaging/manifests/apply.ts';
import { createClient } from './client.ts';
import { type EmbeddedServer, startEmbedded } from './servers.ts';

describe('the embedded cluster', () => {
  let server: EmbeddedServer;
  const closing: Array<() => Promise<void>> = [];

  beforeAll(async () => {
    server = await startEmbedded();
    const client = createClient({ url: server.server.url, ca: server.tls.ca, token: server.token });
    for (const definition of customResourceDefinitions()) {
      const { code, body } = await client.call(
        'POST',
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
        definition,
      );
      if (code !== 201) throw new Error(JSON.stringify(body));
    }
    client.close();
  });
  afterAll(async () => {
    for (const close of closing) await close();
    await server?.stop();
  });

  describeCluster('reached with its kubeconfig', async () => {
    const { request, close } = await createKubeconfigTransport(server.kubeconfig);
    closing.push(close);
    const cluster = createCluster({ request });
    const namespace = `promises-${randomBytes(4).toString('hex')}`;
    await cluster.create(RESOURCES.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    return { cluster, namespace };
  });
});
