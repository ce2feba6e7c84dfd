// Clean-up of a deleted CustomResourceDefinition: its objects go first.

import type { Deps } from '../deps.ts';
import { crdFinalizer, crdSpec } from '../kinds/custom-resource-definition.ts';
import { withoutFinalizer } from '../object.ts';
import { crdKey } from '../resources/registry.ts';
import type { Key } from '../store/database.ts';
import { deleteEach, editObject } from './controller-request.ts';
import { type Controller, createController } from './work-queue.ts';

const as = 'customresourcecleanup';

/** Deletes the objects first, respecting their finalizers; the definition goes when none is left. */
export function createCustomResourceCleanup(deps: Deps): Controller {
  const { store, registry } = deps;

  async function work(key: Key): Promise<void> {
    const crd = store.get(key);
    if (crd?.metadata.deletionTimestamp === undefined) return;
    const { group, names } = crdSpec(crd);
    const storedAs = `${group}/${names.plural}`;
    const resource = registry.byStorage(storedAs);
    const left = resource === undefined ? [] : store.list(storedAs).map((object) => ({ resource, object }));
    await deleteEach(deps, as, left);
    if (store.list(storedAs).length > 0) return;
    await editObject(deps, { as, key }, (now) => withoutFinalizer(now, crdFinalizer));
  }

  return createController(deps, {
    name: 'deleting a CustomResourceDefinition',
    work,
    concerned({ resource, type, name }) {
      if (resource === crdKey) return [{ resource, namespace: '', name }];
      const [group, plural] = resource.split('/');
      return type === 'DELETED' ? [{ resource: crdKey, namespace: '', name: `${plural}.${group}` }] : [];
    },
  });
}
