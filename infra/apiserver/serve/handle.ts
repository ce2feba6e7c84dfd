// How does each verb answer?

import { isApiError, noSuchPath, type Outcome, type Status } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import { get, present } from '../read/get.ts';
import { list, presentList } from '../read/list.ts';
import { negotiate, type Representation } from '../read/representation.ts';
import { type Watch, watch } from '../read/watch.ts';
import { decodeBody, mediaType } from '../request/body.ts';
import { duplicateMembers } from '../request/duplicate-members.ts';
import type { ApiRequest } from '../request/request.ts';
import type { JsonObject } from '../schema/json.ts';
import { create } from '../write/create.ts';
import { decodeObject } from '../write/decode.ts';
import { readDeletion, remove } from '../write/delete.ts';
import { deleteCollection } from '../write/delete-collection.ts';
import { patch } from '../write/patch.ts';
import { update } from '../write/update.ts';

export type ResourceResponse =
  | { readonly code: number; readonly body: JsonObject | Status; readonly form: Representation }
  | { readonly watch: Watch; readonly form: Representation };

/** Serves one request on one resource. */
export async function handle(deps: Deps, request: ApiRequest): Promise<Outcome<ResourceResponse>> {
  const form = negotiate(request.accept, request.query);
  if (isApiError(form)) return form;
  const { resource, subresource } = request;
  if (subresource !== undefined && !resource.subresources.some((one) => one === subresource)) {
    return noSuchPath(
      `the embedded cluster has no ${resource.plural}/${subresource}; for that use a real cluster (--cluster envtest)`,
    );
  }
  const show = (object: KubeObject, code = 200): ResourceResponse => ({
    code,
    form,
    body: present(resource, object, form, deps.now()),
  });
  switch (request.verb) {
    case 'get':
      return map(get(deps, request), show);
    case 'list':
      return map(list(deps, request), (page) => ({
        code: 200,
        form,
        body: presentList(resource, page, form, deps.now()),
      }));
    case 'watch':
      return map(watch(deps, request, form), (watching) => ({ watch: watching, form }));
    case 'create':
      return map(await createFrom(deps, request), (object) => show(object, 201));
    case 'update':
      return map(await updateFrom(deps, request), show);
    case 'patch':
      return map(await patch(deps, request), ({ object, created }) => show(object, created ? 201 : 200));
    case 'delete':
      return deleteOne(deps, request, form);
    case 'deletecollection':
      return map(await deleteCollection(deps, request), (page) => ({
        code: 200,
        form,
        body: presentList(resource, page, form, deps.now()),
      }));
  }
}

function map<T>(outcome: Outcome<T>, make: (value: T) => ResourceResponse): Outcome<ResourceResponse> {
  return isApiError(outcome) ? outcome : make(outcome);
}

async function createFrom(deps: Deps, request: ApiRequest): Promise<Outcome<KubeObject>> {
  const object = decoded(request);
  return isApiError(object) ? object : create(deps, request, object);
}

async function updateFrom(deps: Deps, request: ApiRequest): Promise<Outcome<KubeObject>> {
  const object = decoded(request);
  return isApiError(object) ? object : update(deps, request, { isPut: true, next: () => object });
}

function decoded(request: ApiRequest): Outcome<KubeObject> {
  const body = decodeBody(request.body, request.contentType);
  if (isApiError(body)) return body;
  const isJson = mediaType(request.contentType) === 'application/json';
  const duplicates =
    isJson && request.fieldValidation !== 'Ignore' ? duplicateMembers(request.body.toString('utf8')) : [];
  return decodeObject(request.resource, body, { ...request, duplicates });
}

async function deleteOne(deps: Deps, request: ApiRequest, form: Representation): Promise<Outcome<ResourceResponse>> {
  const deletion = readDeletion(request);
  if (isApiError(deletion)) return deletion;
  const deleted = await remove(deps, deletion.request, deletion.options);
  if (isApiError(deleted)) return deleted;
  const { object, gone } = deleted;
  return {
    code: 200,
    form,
    body: gone ? success(request, object) : present(request.resource, object, form, deps.now()),
  };
}

function success({ resource }: ApiRequest, { metadata }: KubeObject): Status {
  const details = {
    name: metadata.name ?? '',
    ...(resource.group && { group: resource.group }),
    kind: resource.plural,
    ...(metadata.uid && { uid: metadata.uid }),
  };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}
