// Namespaces: the service account of a new one, and the emptying of a deleted one.

import { isApiError } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import { namespaceFinalizer, namespaceFinalizers } from '../kinds/namespace.ts';
import { type KubeObject, withMember } from '../object.ts';
import type { Key } from '../store/database.ts';
import { create } from '../write/create.ts';
import { controllerRequest, deleteEach, done, editObject, type Item } from './controller-request.ts';
import { type Add, type Controller, createController } from './work-queue.ts';

const as = 'namespace-controller';
const stored = '/namespaces';

/**
 * `kubectl delete -f` deletes a file's namespace first: the real server's controllers leave it this long to delete the
 * rest.
 */
const grace = 1500;

/** Gives every namespace its `default` service account; empties one that is being deleted, then lets it go. */
export function createNamespaceController(deps: Deps): Controller {
  const { store, registry } = deps;

  async function work(key: Key, add: Add): Promise<void> {
    const namespace = store.get(key);
    if (namespace === undefined) return;
    const { deletionTimestamp } = namespace.metadata;
    if (deletionTimestamp === undefined) return serviceAccount(key.name);
    const delay = grace - (deps.now() - Date.parse(deletionTimestamp));
    if (delay > 0) return add(key, delay);
    await deleteEach(deps, as, contentOf(key.name));
    if (contentOf(key.name).length === 0) await editObject(deps, { as, key, subresource: 'finalize' }, finalized);
  }

  async function serviceAccount(namespace: string): Promise<void> {
    const resource = registry.find('', 'v1', 'serviceaccounts');
    if (resource === undefined || store.get({ resource: resource.storedAs, namespace, name: 'default' })) return;
    const object: KubeObject = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } };
    const request = controllerRequest({ as: 'service-account-controller', verb: 'create', resource, object });
    done(await create(deps, request, object));
  }

  function contentOf(namespace: string): Item[] {
    return store.resources().flatMap((key) => {
      const resource = registry.byStorage(key);
      if (!resource?.namespaced) return [];
      return store.list(key, namespace).map((object) => ({ resource, object }));
    });
  }

  return createController(deps, {
    name: 'namespace deletion',
    work,
    concerned({ resource, namespace, name, type }) {
      if (resource === stored) return [{ resource, namespace, name }];
      return type === 'DELETED' && namespace !== '' ? [{ resource: stored, namespace: '', name: namespace }] : [];
    },
  });
}

/** The namespace without the finalizer of this controller. */
function finalized(namespace: KubeObject): KubeObject {
  const finalizers = namespaceFinalizers(namespace).filter((one) => one !== namespaceFinalizer);
  return withMember(namespace, 'spec', finalizers.length > 0 ? { finalizers } : {});
}

const bootstrapped = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Makes the namespaces that every cluster has, where they are not there yet. */
export async function bootstrapNamespaces(deps: Deps): Promise<void> {
  const resource = deps.registry.find('', 'v1', 'namespaces');
  if (resource === undefined) throw new Error('the server does not know namespaces');
  for (const name of bootstrapped) {
    if (deps.store.get({ resource: resource.storedAs, namespace: '', name }) !== undefined) continue;
    const object: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    const made = await create(deps, controllerRequest({ as: 'bootstrap', verb: 'create', resource, object }), object);
    if (isApiError(made)) throw new Error(`making the namespace ${name}: ${made.status.message}`);
  }
}
