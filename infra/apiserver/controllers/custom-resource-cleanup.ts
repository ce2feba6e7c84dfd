// Clean-up of a deleted CustomResourceDefinition: its objects go first.

import type { Deps } from '../deps.ts';
import { crdFinalizer, crdSpec } from '../kinds/custom-resource-definition.ts';
import type { Log } from '../log.ts';
import { type KubeObject, withoutFinalizer } from '../object.ts';
import { crdKey } from '../resources/registry.ts';
import type { StoredEvent } from '../store/history.ts';
import { update } from '../write/update.ts';
import { controllerRequest, deleteEach, done } from './controller-request.ts';
import { createWorkQueue } from './work-queue.ts';

const as = 'customresourcecleanup';

/** They are deleted first, with their finalizers respected; the definition goes when none is left. */
export function createCustomResourceCleanup(deps: Deps, log: Log): { start(): void; stop(): Promise<void> } {
  const { store, registry } = deps;
  const queue = createWorkQueue<string>({
    name: 'deleting a CustomResourceDefinition',
    log,
    keyOf: (name) => name,
    work,
  });

  async function work(name: string): Promise<void> {
    const crd = store.get({ resource: crdKey, namespace: '', name });
    if (crd?.metadata.deletionTimestamp === undefined) return;
    const storedAs = storageOf(crd);
    const resource = registry.byStorage(storedAs);
    const left = resource === undefined ? [] : store.list(storedAs).map((object) => ({ resource, object }));
    await deleteEach(deps, as, left);
    if (store.list(storedAs).length === 0) await release(crd);
  }

  async function release(crd: KubeObject): Promise<void> {
    const resource = registry.byStorage(crdKey);
    if (resource === undefined) return;
    const next = (now: KubeObject) => withoutFinalizer(now, crdFinalizer);
    done(await update(deps, controllerRequest({ as, verb: 'patch', resource, object: crd }), { isPut: false, next }));
  }

  function follow({ resource, type, object, name }: StoredEvent): void {
    if (resource === crdKey && object.metadata.deletionTimestamp !== undefined) queue.add(name);
    if (type !== 'DELETED' || resource === crdKey) return;
    const [group, plural] = resource.split('/');
    const crd = store.get({ resource: crdKey, namespace: '', name: `${plural}.${group}` });
    if (crd?.metadata.deletionTimestamp !== undefined) queue.add(`${plural}.${group}`);
  }

  return {
    start() {
      store.subscribe(follow);
      for (const { metadata } of store.list(crdKey)) queue.add(metadata.name ?? '');
    },
    stop: queue.stop,
  };
}

function storageOf(crd: KubeObject): string {
  const { group, names } = crdSpec(crd);
  return `${group}/${names.plural}`;
}
