// Deletes: immediate, or when the last finalizer is removed.

import {
  type ApiError,
  conflict,
  forbidden,
  isApiError,
  notFound,
  type Outcome,
  objectModified,
} from '../api-error.ts';
import type { Deps } from '../deps.ts';
import { namespaceFinalizers } from '../kinds/namespace.ts';
import { type KubeObject, timestamp, withMeta } from '../object.ts';
import { list } from '../read/list.ts';
import type { Page } from '../read/representation.ts';
import { decodeBody } from '../request/body.ts';
import { type ApiRequest, wrongOption } from '../request/request.ts';
import { keyOf, shown } from '../resource.ts';
import { notSupported } from '../schema/field-errors.ts';
import { isObject, type JsonObject } from '../schema/json.ts';

export type DeleteOptions = {
  readonly propagationPolicy?: string;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
};

/** `object` is the object as it is now, or was last; `gone` tells which. */
export type DeleteResult = { readonly object: KubeObject; readonly isRemoved: boolean };

const protectedNamespaces: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

export const foregroundFinalizer = 'foregroundDeletion';
export const orphanFinalizer = 'orphan';

/**
 * Deletes, or marks as being deleted what finalizers (or a namespace's content) still hold. Repeating it changes
 * nothing.
 */
export async function deleteObject(
  deps: Deps,
  request: ApiRequest,
  options: DeleteOptions,
): Promise<Outcome<DeleteResult>> {
  const { resource, namespace, name = '' } = request;
  const key = keyOf(resource, namespace, name);
  for (let attempt = 0; ; attempt++) {
    const stored = deps.store.get(key);
    if (stored === undefined) return notFound(resource, name);
    if (resource.plural === 'namespaces' && protectedNamespaces.has(name))
      return forbidden(resource, name, 'this namespace may not be deleted');
    const error = (await admit(deps, request, stored, options)) ?? preconditions(request, stored, options);
    if (error !== undefined) return error;
    const from = stored.metadata.resourceVersion ?? '';
    const marked = mark({ options, now: deps.now() }, request, stored);
    const isRemoved = isFree(marked);
    if (!isRemoved && marked === stored) return { object: shown(resource, stored), isRemoved: false };
    if (request.dryRun) return { object: shown(resource, marked), isRemoved: isRemoved };
    const change = isRemoved
      ? ({ do: 'delete', object: stored } as const)
      : ({ do: 'update', object: marked } as const);
    const written = deps.store.write({ ...change, ...key, from });
    if (typeof written === 'object') return { object: shown(resource, written.object), isRemoved: isRemoved };
    if (written === 'missing') return notFound(resource, name);
    if (attempt === 5) return conflict(resource, name, objectModified);
  }
}

/** Deletes the objects that the selectors choose, one after the other; answers with those deleted. */
export async function deleteCollection(deps: Deps, asked: ApiRequest): Promise<Outcome<Page>> {
  const deletion = readDeletion(asked);
  if (isApiError(deletion)) return deletion;
  const { request, options } = deletion;
  const page = list(deps, request);
  if (isApiError(page)) return page;
  const objects: KubeObject[] = [];
  for (const { metadata } of page.objects) {
    const one = { ...request, namespace: metadata.namespace, name: metadata.name };
    const deleted = await deleteObject(deps, one, options);
    if (!isApiError(deleted)) objects.push(deleted.object);
    else if (deleted.status.code !== 404) return deleted;
  }
  return { objects, metadata: { resourceVersion: String(deps.store.revision()) } };
}

/**
 * The DeleteOptions of the body or, as curl users write them, of the query; a dry run that the body asks for is one of
 * the request.
 */
export function readDeletion(
  request: ApiRequest,
): Outcome<{ readonly request: ApiRequest; readonly options: DeleteOptions }> {
  const body = request.body.length === 0 ? undefined : decodeBody(request.body, request.contentType);
  if (isApiError(body)) return body;
  const options = deleteOptions(body, request.query);
  if (isApiError(options)) return options;
  const dryRun = request.dryRun || (Array.isArray(body?.dryRun) && body.dryRun.includes('All'));
  return { request: { ...request, dryRun }, options };
}

function deleteOptions(body: JsonObject | undefined, query: URLSearchParams): Outcome<DeleteOptions> {
  const policy = body?.propagationPolicy ?? query.get('propagationPolicy') ?? undefined;
  if (policy !== undefined && !['Orphan', 'Background', 'Foreground'].includes(String(policy))) {
    return wrongOption(
      'DeleteOptions',
      notSupported('propagationPolicy', policy, ['Foreground', 'Background', 'Orphan', 'nil']),
    );
  }
  return {
    ...(policy !== undefined && { propagationPolicy: String(policy) }),
    ...(isObject(body?.preconditions) && { preconditions: body.preconditions }),
  };
}

async function admit(
  deps: Deps,
  request: ApiRequest,
  stored: KubeObject,
  options: DeleteOptions,
): Promise<ApiError | undefined> {
  const old = shown(request.resource, stored);
  const attempt = { request, operation: 'DELETE', object: undefined, old, options } as const;
  const mutated = await deps.admission.mutate(attempt, old, () => old);
  return isApiError(mutated) ? mutated : deps.admission.validate(attempt);
}

function preconditions(
  { resource, name = '' }: ApiRequest,
  stored: KubeObject,
  options: DeleteOptions,
): ApiError | undefined {
  const { uid, resourceVersion } = options.preconditions ?? {};
  const { metadata } = stored;
  const broken = (what: string, wanted: string, found: string | undefined, why: string) => {
    const words = `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${found}). ${why}`;
    return conflict({ ...resource, plural: resource.kind }, name, words); // the real server names the kind here
  };
  if (uid !== undefined && uid !== metadata.uid) {
    return broken('UID', uid, metadata.uid, 'The object might have been deleted and then recreated');
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    return broken('ResourceVersion', resourceVersion, metadata.resourceVersion, 'The object might have been modified');
  }
  return undefined;
}

function mark({ options, now }: { options: DeleteOptions; now: number }, { resource }: ApiRequest, stored: KubeObject) {
  const { deletionTimestamp } = stored.metadata;
  const leaving = deletionTimestamp === undefined ? (resource.strategy.beforeDelete?.(stored) ?? stored) : stored;
  const { generation, finalizers: held = [] } = leaving.metadata;
  const finalizers = propagated(held, options);
  if (deletionTimestamp !== undefined && finalizers.join() === held.join()) return stored;
  const marked = withMeta(leaving, {
    finalizers: finalizers.length > 0 ? finalizers : undefined,
    ...(deletionTimestamp === undefined && {
      deletionTimestamp: timestamp(now),
      deletionGracePeriodSeconds: resource.plural === 'namespaces' && resource.group === '' ? undefined : 0,
      generation: generation === undefined ? undefined : generation + 1,
    }),
  });
  return resource.strategy.updateStatus?.(marked, timestamp(now)) ?? marked;
}

function propagated(finalizers: readonly string[], { propagationPolicy: policy }: DeleteOptions): string[] {
  if (policy === undefined) return [...finalizers];
  const others = finalizers.filter((one) => one !== foregroundFinalizer && one !== orphanFinalizer);
  if (policy === 'Foreground') return [...others, foregroundFinalizer];
  return policy === 'Orphan' ? [...others, orphanFinalizer] : others;
}

/** Whether nothing holds an object that is being deleted. */
export function isFree(object: KubeObject): boolean {
  const isNamespace = object.kind === 'Namespace' && object.apiVersion === 'v1';
  return (object.metadata.finalizers ?? []).length === 0 && (!isNamespace || namespaceFinalizers(object).length === 0);
}
