// Which namespaces does every cluster have?

import { isApiError } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import { create } from '../write/create.ts';
import { controllerRequest } from './controller-request.ts';

const names = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Makes those that are not there yet. */
export async function bootstrapNamespaces(deps: Deps): Promise<void> {
  const resource = deps.registry.find('', 'v1', 'namespaces');
  if (resource === undefined) throw new Error('the cluster does not know namespaces');
  for (const name of names) {
    if (deps.store.get({ resource: resource.storedAs, namespace: '', name }) !== undefined) continue;
    const object: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    const made = await create(
      deps,
      controllerRequest({ as: 'embedded-cluster', verb: 'create', resource, object }),
      object,
    );
    if (isApiError(made)) throw new Error(`making the namespace ${name}: ${made.status.message}`);
  }
}
