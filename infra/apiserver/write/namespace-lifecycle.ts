// Namespace lifecycle: nothing new in a namespace that is not there, or going.
import { type ApiError, forbidden, notFound } from '../api-error.ts';
import type { Resource } from '../resource.ts';
import type { Store } from '../store/store.ts';

const namespaces = { group: '', plural: 'namespaces', kind: 'Namespace' };

/** A namespace that is not there is 404; one that is going is 403 with the cause NamespaceTerminating. */
export function namespaceLifecycle(
  store: Pick<Store, 'get'>,
  resource: Resource,
  { namespace, name }: { namespace: string; name: string },
): ApiError | undefined {
  const found = store.get({ resource: '/namespaces', namespace: '', name: namespace });
  if (found === undefined) return notFound(namespaces, namespace);
  if (found.metadata.deletionTimestamp === undefined) return undefined;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  return forbidden(resource, name, why, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ]);
}
