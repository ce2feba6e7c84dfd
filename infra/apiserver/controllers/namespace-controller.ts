// Namespaces: what is made in a new one, and how a deleted one is emptied.

import { isApiError, qualified } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import { namespaceFinalizer, namespaceFinalizers } from '../kinds/namespace.ts';
import type { Log } from '../log.ts';
import { type KubeObject, timestamp, withMember } from '../object.ts';
import { type JsonObject, objectAt } from '../schema/json.ts';
import type { StoredEvent } from '../store/history.ts';
import { create } from '../write/create.ts';
import { update } from '../write/update.ts';
import { controllerRequest, deleteEach, done, type Item } from './controller-request.ts';
import { createWorkQueue } from './work-queue.ts';

const as = 'namespace-controller';
const stored = '/namespaces';

/** `kubectl delete -f` deletes a file's namespace first: the real server's controllers leave it this long to delete the rest. */
const grace = 1500;

/** Gives every namespace its `default` service account; empties one that is being deleted, then lets it go. */
export function createNamespaceController(deps: Deps, log: Log): { start(): void; stop(): Promise<void> } {
  const { store, registry } = deps;
  const queue = createWorkQueue<string>({ name: 'namespace deletion', log, keyOf: (name) => name, work });

  async function work(name: string): Promise<void> {
    const namespace = store.get({ resource: stored, namespace: '', name });
    if (namespace === undefined) return;
    const { deletionTimestamp } = namespace.metadata;
    if (deletionTimestamp === undefined) return serviceAccount(name);
    const delay = grace - (deps.now() - Date.parse(deletionTimestamp));
    if (delay > 0) return queue.add(name, delay);
    await deleteEach(deps, as, contentOf(name));
    const left = contentOf(name);
    if (left.length > 0) return report(namespace, left);
    await finalize(namespace);
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

  async function report(namespace: KubeObject, left: readonly Item[]): Promise<void> {
    const resource = registry.find('', 'v1', 'namespaces');
    if (resource === undefined) return;
    const conditions = remaining(left, objectAt(namespace, 'status').conditions, timestamp(deps.now()));
    const next = (now: KubeObject) => withMember(now, 'status', { ...objectAt(now, 'status'), conditions });
    const request = controllerRequest({ as, verb: 'patch', resource, object: namespace, subresource: 'status' });
    done(await update(deps, request, { isPut: false, next }));
  }

  async function finalize(namespace: KubeObject): Promise<void> {
    const resource = registry.find('', 'v1', 'namespaces');
    if (resource === undefined) return;
    const request = controllerRequest({ as, verb: 'update', resource, object: namespace, subresource: 'finalize' });
    const finalizers = namespaceFinalizers(namespace).filter((one) => one !== namespaceFinalizer);
    const next = (now: KubeObject) => withMember(now, 'spec', finalizers.length > 0 ? { finalizers } : {});
    done(await update(deps, request, { isPut: false, next }));
  }

  function follow({ resource, namespace, name, type }: StoredEvent): void {
    if (resource === stored) queue.add(name);
    else if (type === 'DELETED' && namespace !== '') {
      const inside = store.get({ resource: stored, namespace: '', name: namespace });
      if (inside?.metadata.deletionTimestamp !== undefined) queue.add(namespace);
    }
  }

  return {
    start() {
      store.subscribe(follow);
      for (const { metadata } of store.list(stored)) queue.add(metadata.name ?? '');
    },
    stop: queue.stop,
  };
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

/** The conditions that say why a namespace does not go away. */
function remaining(left: readonly Item[], before: unknown, now: string): JsonObject[] {
  const content = tally(left.map(({ resource }) => qualified(resource)));
  const finalizers = tally(left.flatMap(({ object }) => object.metadata.finalizers ?? []));
  const kinds = content.map(([kind, count]) => `${kind} has ${count} resource instances`).join(', ');
  const held = finalizers.map(([finalizer, count]) => `${finalizer} in ${count} resource instances`).join(', ');
  const made = [
    ['NamespaceContentRemaining', 'SomeResourcesRemain', `Some resources are remaining: ${kinds}`],
    ['NamespaceFinalizersRemaining', 'SomeFinalizersRemain', `Some content has finalizers remaining: ${held}`],
  ];
  return made.slice(0, held === '' ? 1 : 2).map(([type, reason, message]) => {
    const known = (Array.isArray(before) ? (before as JsonObject[]) : []).find((one) => one.message === message);
    return known ?? { type, status: 'True', reason, message, lastTransitionTime: now };
  });
}

function tally(names: readonly string[]): Array<[name: string, count: number]> {
  return [...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]);
}
