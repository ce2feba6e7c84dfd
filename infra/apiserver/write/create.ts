// Creates: an object gets its place, its uid and its name.

import {
  type ApiError,
  alreadyExists,
  badRequest,
  forbidden,
  isApiError,
  methodNotAllowed,
  notFound,
  type Outcome,
} from '../api-error.ts';
import type { Deps } from '../deps.ts';
import { type KubeObject, timestamp, withMember, withMeta } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { keyOf, type Resource, shown } from '../resource.ts';
import type { Store } from '../store/store.ts';
import { admitAndValidate } from './admit-and-validate.ts';

/** Creates a decoded object. */
export async function create(deps: Deps, request: ApiRequest, given: KubeObject): Promise<Outcome<KubeObject>> {
  const placed = place(request, given);
  if (isApiError(placed)) return placed;
  const error = mayCreate(deps, request, placed);
  if (error !== undefined) return error;
  const { resource } = request;
  const system = {
    uid: deps.newUid(),
    creationTimestamp: timestamp(deps.now()),
    ...(resource.generations && { generation: 1 }),
  };
  const preserve = (object: KubeObject) => {
    const born = withMeta(object, { ...system, namespace: placed.metadata.namespace });
    return resource.subresources.includes('status') ? withMember(born, 'status', undefined) : born;
  };
  for (let attempt = 0; ; attempt++) {
    const admitted = await admitAndValidate(deps, { request, object: placed, preserve });
    if (isApiError(admitted)) return admitted;
    const name = admitted.metadata.name ?? '';
    const key = keyOf(resource, admitted.metadata.namespace, name);
    const taken = deps.store.get(key);
    if (taken !== undefined) {
      if (placed.metadata.name === undefined && attempt < 7) continue;
      return alreadyExists(resource, name, taken.metadata.deletionTimestamp !== undefined);
    }
    if (request.dryRun) return admitted;
    const written = deps.store.write({ do: 'create', ...key, object: admitted });
    if (typeof written === 'object') return shown(resource, written.object);
  }
}

/** The object under the name and namespace of the request, without the fields that only the server may set. */
function place({ verb, resource, namespace, name }: ApiRequest, object: KubeObject): Outcome<KubeObject> {
  const given = object.metadata;
  if (name !== undefined && given.name !== undefined && given.name !== name) {
    return badRequest(`the name of the object (${given.name}) does not match the name on the URL (${name})`);
  }
  if (resource.namespaced && given.namespace !== undefined && given.namespace !== namespace) {
    return badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (given.resourceVersion !== undefined && given.resourceVersion !== '0') {
    return badRequest('resourceVersion should not be set on objects to be created');
  }
  return withMeta(object, {
    name: given.name ?? name,
    namespace: resource.namespaced ? namespace : undefined,
    uid: undefined,
    resourceVersion: undefined,
    generation: undefined,
    creationTimestamp: undefined,
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    selfLink: undefined,
    ...(verb === 'create' && { managedFields: undefined }), // a server-side apply alone writes them
  });
}

function mayCreate(
  { store, registry }: Deps,
  { resource }: ApiRequest,
  { metadata }: KubeObject,
): ApiError | undefined {
  if (resource.namespaced) {
    const place = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
    const error = namespaceLifecycle(store, resource, place);
    if (error !== undefined) return error;
  }
  if (!resource.custom) return undefined;
  const definition = registry.definition(resource);
  if (definition === undefined) return forbidden(resource, '', 'its custom resource definition is gone');
  if (definition.metadata.deletionTimestamp === undefined) return undefined;
  return methodNotAllowed(resource, 'create not allowed while custom resource definition is terminating');
}

const namespaces = { group: '', plural: 'namespaces', kind: 'Namespace' };

/** A namespace that is not there is 404; one that is going is 403 with the cause NamespaceTerminating. */
function namespaceLifecycle(
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
