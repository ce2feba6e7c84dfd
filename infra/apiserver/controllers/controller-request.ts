// Requests of the server's own controllers: through admission like all others, under a name of their own.

import { isApiError, type Outcome } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import type { ApiRequest, Verb } from '../request/request.ts';
import type { Resource } from '../resource.ts';
import type { Key } from '../store/database.ts';
import { deleteObject } from '../write/delete.ts';
import { update } from '../write/update.ts';

type ControllerAction = {
  readonly as: string;
  readonly verb: Verb;
  readonly resource: Resource;
  readonly object: KubeObject;
  readonly subresource?: string | undefined;
};

export function controllerRequest({ as, verb, resource, object, subresource }: ControllerAction): ApiRequest {
  return {
    verb,
    resource,
    namespace: object.metadata.namespace,
    name: object.metadata.name,
    subresource,
    query: new URLSearchParams({ fieldManager: as }),
    contentType: 'application/json',
    accept: '',
    body: Buffer.alloc(0),
    user: {
      username: `system:serviceaccount:kube-system:${as}`,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
    },
    dryRun: false,
    fieldValidation: 'Ignore',
    warn: () => {},
    signal: new AbortController().signal,
    deadline: Number.POSITIVE_INFINITY,
  };
}

export type Item = { readonly resource: Resource; readonly object: KubeObject };

/** Deletes the objects that are not being deleted yet, one after the other; finalizers are respected. */
export async function deleteEach(deps: Deps, as: string, items: readonly Item[]): Promise<void> {
  for (const { resource, object } of items) {
    const { deletionTimestamp, uid = '' } = object.metadata;
    if (deletionTimestamp !== undefined) continue;
    const request = controllerRequest({ as, verb: 'delete', resource, object });
    done(await deleteObject(deps, request, { propagationPolicy: 'Background', preconditions: { uid } }));
  }
}

/** Changes an object that is there. */
export async function editObject(
  deps: Deps,
  { as, key, subresource }: { as: string; key: Key; subresource?: string },
  next: (object: KubeObject) => KubeObject,
): Promise<void> {
  const [object, resource] = [deps.store.get(key), deps.registry.byStorage(key.resource)];
  if (object === undefined || resource === undefined) return;
  const request = controllerRequest({ as, verb: 'patch', resource, object, subresource });
  done(await update(deps, request, { isPut: false, next }));
}

/** An object that is gone counts as done; any other error is thrown, and its work tried again later. */
export function done(outcome: Outcome<unknown>): void {
  if (!isApiError(outcome)) return;
  const { code, message } = outcome.status;
  if (code !== 404) throw new Error(message);
}
