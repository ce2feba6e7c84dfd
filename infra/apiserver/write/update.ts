// Updates: an object changes without losing what another writer wrote meanwhile.

import {
  type ApiError,
  badRequest,
  conflict,
  invalid,
  isApiError,
  notFound,
  type Outcome,
  objectModified,
} from '../api-error.ts';
import type { Deps } from '../deps.ts';
import { type KubeObject, withMeta } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { keyOf, shown } from '../resource.ts';
import { invalid as invalidField } from '../schema/field-errors.ts';
import { sameJson } from '../schema/json.ts';
import { admitAndValidate } from './admit-and-validate.ts';
import { isFree } from './delete.ts';
import { preserveServerFields } from './preserve-server-fields.ts';

export type Edit = {
  /** The wanted object, made from the present one; called again when another writer was faster. */
  next(old: KubeObject): Outcome<KubeObject>;
  /** A PUT names the version it saw; a patch applies to the present object. */
  readonly isPut: boolean;
  /** The edit writes managedFields. */
  readonly isApply?: boolean;
};

/** Applies an edit. An edit that changes nothing is not written: no revision, no event. */
export async function update(deps: Deps, request: ApiRequest, edit: Edit): Promise<Outcome<KubeObject>> {
  const { resource, namespace, name = '' } = request;
  const key = keyOf(resource, namespace, name);
  for (let attempt = 0; ; attempt++) {
    const stored = deps.store.get(key);
    if (stored === undefined) return notFound(resource, name);
    const old = shown(resource, stored);
    const admitted = await admitEdit(deps, { request, old, edit });
    if (isApiError(admitted)) return admitted;
    if (sameButFor(admitted, old)) return old;
    if (request.dryRun) return admitted;
    const isRemoved = admitted.metadata.deletionTimestamp !== undefined && isFree(admitted);
    const from = stored.metadata.resourceVersion ?? '';
    const written = deps.store.write({ do: isRemoved ? 'delete' : 'update', ...key, object: admitted, from });
    if (typeof written === 'object') return shown(resource, written.object);
    if (written === 'missing') return notFound(resource, name);
    if (attempt === 5) return conflict(resource, name, objectModified);
  }
}

async function admitEdit(
  deps: Deps,
  step: { request: ApiRequest; old: KubeObject; edit: Edit },
): Promise<Outcome<KubeObject>> {
  const { request, old, edit } = step;
  const wanted = edit.next(old);
  if (isApiError(wanted)) return wanted;
  const error = preconditions(request, wanted, old, edit.isPut);
  if (error !== undefined) return error;
  const preserve = preserveServerFields(request, old, edit.isApply);
  const object = withMeta(wanted, { resourceVersion: old.metadata.resourceVersion });
  return admitAndValidate(deps, { request, object, old, preserve });
}

function preconditions(
  { resource, name = '' }: ApiRequest,
  wanted: KubeObject,
  old: KubeObject,
  isPut: boolean,
): ApiError | undefined {
  const { name: given, namespace, uid, resourceVersion, deletionTimestamp } = wanted.metadata;
  if (given === undefined) {
    return badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  if (given !== old.metadata.name) {
    return badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
  }
  if (resource.namespaced && namespace !== undefined && namespace !== old.metadata.namespace) {
    return badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (deletionTimestamp !== undefined && deletionTimestamp !== old.metadata.deletionTimestamp) {
    return invalid(resource, name, [
      invalidField('metadata.deletionTimestamp', deletionTimestamp, 'field is immutable'),
    ]);
  }
  if (isPut && uid !== undefined && uid !== old.metadata.uid) {
    return conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
    );
  }
  if (resourceVersion === undefined || resourceVersion === '0') {
    if (!isPut || resource.unconditionalUpdate) return undefined;
    const cause = invalidField('metadata.resourceVersion', 0, 'must be specified for an update');
    return invalid({ ...resource, kind: resource.plural }, name, [cause]); // the real server names the resource here
  }
  return resourceVersion === old.metadata.resourceVersion ? undefined : conflict(resource, name, objectModified);
}

/** The times in managedFields alone are no change. */
function sameButFor(next: KubeObject, old: KubeObject): boolean {
  const bare = (object: KubeObject) => {
    const { managedFields = [], ...metadata } = object.metadata;
    return { ...object, metadata, managedFields: managedFields.map(({ time: _, ...entry }) => entry) };
  };
  return sameJson(bare(next), bare(old));
}
