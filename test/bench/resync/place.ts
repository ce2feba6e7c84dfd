// The cluster of the resync bench: a stand-in for an API server, or a real one.
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { mapConcurrent } from '../../../functions/core/concurrency/limiter.ts';
import { customResourceDefinitions, resourceOf } from '../../../infra/packaging/manifests/apply.ts';
import { startControlPlane } from '../../support/control-plane.ts';
import { askEtcd, putInEtcd } from '../admission/etcd-keys.ts';
import { startStandIn } from './api-server.ts';

/** The namespace of the bench's keys. */
export const NAMESPACES = Array.from({ length: 50 }, (_, index) => `team-${index}`);

export interface Place {
  readonly url: string;
  readonly token: string;
  /** The CA in PEM; empty: no TLS. */
  readonly ca: string;
  put(resource: Resource, objects: ReadonlyArray<KubeObject>): Promise<void>;
  /** Stores objects as they are, with uid and status. */
  copy(resource: Resource, objects: ReadonlyArray<KubeObject>): Promise<void>;
  get(resource: Resource, namespace: string, name: string): Promise<KubeObject>;
  /** Bytes in use of the disk of its etcd, where it has one. */
  storedBytes?(): Promise<number>;
  stop(): Promise<void>;
}

export async function openDouble(): Promise<Place> {
  const api = await startStandIn();
  const put = async (resource: Resource, objects: ReadonlyArray<KubeObject>) => {
    for (const object of objects) api.put(resource, object);
  };
  const get = async (resource: Resource, namespace: string, name: string) => api.get(resource, namespace, name);
  return { url: api.url, token: 'bench', ca: '', put, copy: put, get, stop: api.stop };
}

/** kube-apiserver and etcd, with our CRDs and the namespaces of the bench. */
export async function openReal(): Promise<Place> {
  const plane = await startControlPlane();
  const { request, close } = await createKubeconfigTransport(plane.kubeconfig);
  const cluster = createCluster({ request });
  const put = async (resource: Resource, objects: ReadonlyArray<KubeObject>) => {
    await mapConcurrent(objects, async (object) => {
      const written = await cluster.create(resource, object);
      if (!written.ok) throw new Error(`${object.kind} ${object.metadata.name}: ${written.message}`);
      return [];
    });
  };
  const get = async (resource: Resource, namespace: string, name: string) => {
    const { metadata, ...rest } = (await cluster.get(resource, namespace, name)) as KubeObject;
    const { resourceVersion: _, ...own } = metadata;
    return { ...rest, metadata: own } as KubeObject;
  };
  for (const definition of customResourceDefinitions()) await put(resourceOf(definition.kind), [definition]);
  while (!(await cluster.serves(virtualKeys).catch(() => false))) await new Promise((go) => setTimeout(go, 200));
  const namespaces = NAMESPACES.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  await put(resourceOf('Namespace'), namespaces);
  return {
    url: plane.url,
    token: plane.token,
    ca: plane.ca,
    put,
    // Status and uid can only be written to etcd. Core objects are binary there, so those are created through the API.
    copy: async (resource, objects) => {
      if (resource.group === '') return put(resource, objects);
      await putInEtcd(plane.etcd ?? '', `${resource.group}/${resource.plural}`, objects);
      const last = objects.at(-1)?.metadata;
      // The API server sees writes to its etcd by its own watch.
      while ((await cluster.get(resource, last?.namespace, last?.name ?? '')) === undefined)
        await new Promise((go) => setTimeout(go, 200));
    },
    get,
    storedBytes: async () => {
      const { dbSizeInUse } = (await askEtcd(plane.etcd ?? '', 'maintenance/status', {})) as { dbSizeInUse: string };
      return Number(dbSizeInUse);
    },
    stop: async () => {
      await close();
      await plane.stop();
    },
  };
}
