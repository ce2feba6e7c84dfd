// Patches: JSON, merge, strategic merge, and server-side apply.

import { parse as parseYaml } from 'yaml';
import { apiError, badRequest, conflict, isApiError, type Outcome } from '../api-error.ts';
import { jsonPatch, mergePatch, PatchError } from '../codec/patches.ts';
import { serverSideApply } from '../codec/server-side-apply.ts';
import { strategicMerge } from '../codec/strategic-merge.ts';
import type { Deps } from '../deps.ts';
import { type KubeObject, timestamp } from '../object.ts';
import { mediaType, unsupportedMedia } from '../request/body.ts';
import { type ApiRequest, wrongOption } from '../request/request.ts';
import { apiVersionOf, keyOf, type Resource } from '../resource.ts';
import { required } from '../schema/field-errors.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { duplicatesInLists } from '../schema/list-types.ts';
import { create } from './create.ts';
import { decodeObject } from './decode.ts';
import { update } from './update.ts';

export type PatchResult = { readonly object: KubeObject; readonly created: boolean };

/** JSON patch, merge patch, strategic merge patch (core kinds) or server-side apply, by content type. */
export async function patch(deps: Deps, request: ApiRequest): Promise<Outcome<PatchResult>> {
  const type = mediaType(request.contentType);
  if (type === 'application/apply-patch+yaml') return apply(deps, request);
  const change = changeOf(request.resource, type);
  if (isApiError(change)) return change;
  const document = parsed(request);
  if (isApiError(document)) return document;
  const object = await update(deps, request, {
    isPut: false,
    next: (old) => {
      const changed = attempt(() => change(old, document.value));
      return isApiError(changed) ? changed : decodeObject(request.resource, changed, request);
    },
  });
  return isApiError(object) ? object : { object, created: false };
}

type Change = (old: JsonObject, patch: unknown) => JsonObject;

function changeOf({ custom, schema }: Resource, type: string): Outcome<Change> {
  if (type === 'application/json-patch+json') return jsonPatch;
  if (type === 'application/merge-patch+json') return (old, patch) => mergePatch(old, asObject(patch));
  if (type === 'application/strategic-merge-patch+json' && !custom) {
    return (old, patch) => strategicMerge(schema, old, asObject(patch));
  }
  const known = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml'];
  const supported = custom ? known : [...known, 'application/strategic-merge-patch+json'];
  const words = 'the body of the request was in an unknown format - accepted media types include';
  return unsupportedMedia(`${words}: ${supported.join(', ')}`);
}

function asObject(patch: unknown): JsonObject {
  if (isObject(patch)) return patch;
  throw new PatchError(400, 'the patch must be an object');
}

function attempt(change: () => JsonObject): Outcome<JsonObject> {
  try {
    return change() as Outcome<JsonObject>;
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    return error.code === 400 ? badRequest(error.message) : apiError(422, 'Invalid', error.message);
  }
}

function parsed({ body }: ApiRequest): Outcome<{ readonly value: unknown }> {
  try {
    return { value: JSON.parse(body.toString('utf8')) };
  } catch (error) {
    return badRequest(`error decoding patch: ${(error as Error).message}`);
  }
}

/**
 * Server-side apply: creates an absent object, else merges the configuration into the present one. Conflicts are always
 * forced.
 */
async function apply(deps: Deps, request: ApiRequest): Promise<Outcome<PatchResult>> {
  const { resource, query, subresource, name = '' } = request;
  const manager = query.get('fieldManager');
  if (!manager) return wrongOption('PatchOptions', required('fieldManager', 'is required for apply patch'));
  const applied = appliedBody(request);
  if (isApiError(applied)) return applied;
  const merge = (live: KubeObject | undefined): Outcome<KubeObject> => {
    const { schema } = resource;
    const merged = serverSideApply({ live, applied, manager, schema, time: timestamp(deps.now()), subresource });
    return decodeObject(resource, merged, { ...request, fieldValidation: 'Ignore' });
  };
  const exists = deps.store.get(keyOf(resource, request.namespace, name)) !== undefined;
  if (exists || subresource !== undefined) {
    const object = await update(deps, request, { isPut: false, isApply: true, next: merge });
    return isApiError(object) ? object : { object, created: false };
  }
  // A uid names an object that exists.
  const { uid } = isObject(applied.metadata) ? applied.metadata : {};
  if (uid !== undefined) {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    return conflict(resource, name, why);
  }
  const fresh = merge(undefined);
  if (isApiError(fresh)) return fresh;
  const object = await create(deps, request, fresh);
  return isApiError(object) ? object : { object, created: true };
}

function appliedBody(request: ApiRequest): Outcome<JsonObject> {
  const { body, resource, name, namespace } = request;
  let value: unknown;
  try {
    value = parseYaml(body.toString('utf8'));
  } catch (error) {
    return badRequest(`error decoding YAML: ${(error as Error).message}`);
  }
  if (!isObject(value)) return badRequest('the applied configuration must be an object');
  const metadata = isObject(value.metadata) ? value.metadata : {};
  if (metadata.managedFields !== undefined) return badRequest('metadata.managedFields must be nil');
  if (value.kind !== resource.kind || value.apiVersion !== apiVersionOf(resource)) {
    return badRequest(`invalid object type: ${value.apiVersion ?? ''}, Kind=${value.kind ?? ''}`);
  }
  // Unknown fields cannot be merged, whatever the request's field validation says.
  const decoded = decodeObject(resource, value, { ...request, fieldValidation: 'Strict' });
  if (isApiError(decoded)) return decoded;
  const [twice] = duplicatesInLists(value, resource.schema, '');
  if (twice !== undefined) return badRequest(`${twice.field}: ${twice.message}`);
  const place = resource.namespaced ? { namespace: metadata.namespace ?? namespace } : {};
  return { ...writable(request, value), metadata: { ...metadata, name: metadata.name ?? name, ...place } };
}

/**
 * The part of a configuration that the request can write: the status has a subresource of its own, which writes nothing
 * else.
 */
function writable({ resource, subresource }: ApiRequest, { status, ...rest }: JsonObject): JsonObject {
  const { apiVersion, kind } = rest;
  if (subresource !== 'status') {
    const isOwn = status === undefined || resource.subresources.includes('status');
    return isOwn ? rest : { ...rest, status };
  }
  return { apiVersion, kind, status };
}
