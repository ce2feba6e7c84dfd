// Registry of the kinds that are served right now.

import type { Log } from '../log.ts';
import type { KubeObject } from '../object.ts';
import { apiVersionOf, type Resource } from '../resource.ts';
import type { Store } from '../store/store.ts';
import { coreResources } from './core-resources.ts';
import { customResources } from './custom-resources.ts';

export const crdKey = 'apiextensions.k8s.io/customresourcedefinitions';

export type Registry = ReturnType<typeof createRegistry>;

/** The built-in kinds, and those of the CRDs in the store; follows the store as it changes. */
export function createRegistry(store: Pick<Store, 'list' | 'get' | 'subscribe'>, log: Log) {
  const made = new WeakMap<KubeObject, readonly Resource[]>();
  let known: readonly Resource[] | undefined;
  store.subscribe(({ resource }) => {
    if (resource === crdKey) known = undefined;
  });

  function resourcesOf(crd: KubeObject): readonly Resource[] {
    const found = made.get(crd) ?? attempt(crd);
    made.set(crd, found);
    return found;
  }

  /** A definition stored by an earlier release that this one cannot read stops none of the others. */
  function attempt(crd: KubeObject): readonly Resource[] {
    try {
      return customResources(crd);
    } catch (error) {
      log.error('API server: a CustomResourceDefinition is not served', { name: crd.metadata.name, error });
      return [];
    }
  }

  function all(): readonly Resource[] {
    known ??= [...coreResources, ...store.list(crdKey).flatMap(resourcesOf)];
    return known;
  }

  return {
    all,
    find: (group: string, version: string, plural: string) =>
      all().find((one) => one.group === group && one.version === version && one.plural === plural),
    /** The resource of an owner reference or a manifest. */
    byKind: (apiVersion: string, kind: string) =>
      all().find((one) => apiVersionOf(one) === apiVersion && one.kind === kind),
    /** Any served version of what is stored under this key. */
    byStorage: (storedAs: string) => all().find((one) => one.storedAs === storedAs),
    /** The CRD that a custom resource came from. */
    definition: ({ group, plural }: Resource) =>
      store.get({ resource: crdKey, namespace: '', name: `${plural}.${group}` }),
  };
}
