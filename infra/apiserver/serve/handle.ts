// Verbs on resources: what each of them answers.
import { detailsOf, isApiError, type Outcome, type Status } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import { get, list } from '../read/list.ts';
import { negotiate, type Page, showObject, showPage } from '../read/representation.ts';
import { watch } from '../read/watch.ts';
import { decodeBody } from '../request/body.ts';
import type { ApiRequest } from '../request/request.ts';
import type { JsonObject } from '../schema/json.ts';
import { create } from '../write/create.ts';
import { decodeObject } from '../write/decode.ts';
import { type DeleteResult, deleteCollection, deleteObject, readDeletion } from '../write/delete.ts';
import { patch } from '../write/patch.ts';
import { update } from '../write/update.ts';
import type { PlainResponse, WatchResponse } from './write-response.ts';

/** Serves one request on one resource. */
export async function handle(deps: Deps, request: ApiRequest): Promise<Outcome<PlainResponse | WatchResponse>> {
  const form = negotiate(request.accept, request.query);
  if (isApiError(form)) return form;
  const shown = { resource: request.resource, form, now: deps.now() };
  const answer = (body: JsonObject | Status, code = 200): PlainResponse => ({ code, body });
  const object = (found: KubeObject) => answer(showObject(found, shown));
  const page = (found: Page) => answer(showPage(found, shown));
  switch (request.verb) {
    case 'get':
      return map(get(deps, request), object);
    case 'list':
      return map(list(deps, request), page);
    case 'watch':
      return map(watch(deps, request, form), (watching) => ({ watch: watching }));
    case 'create':
      return map(await createFrom(deps, request), (made) => answer(showObject(made, shown), 201));
    case 'update':
      return map(await updateFrom(deps, request), object);
    case 'patch':
      return map(await patch(deps, request), (patched) => {
        return answer(showObject(patched.object, shown), patched.created ? 201 : 200);
      });
    case 'delete':
      return map(await deleteFrom(deps, request), (deleted) => {
        return deleted.isRemoved ? answer(success(request, deleted.object)) : object(deleted.object);
      });
    case 'deletecollection':
      return map(await deleteCollection(deps, request), page);
  }
}

function map<T, R>(outcome: Outcome<T>, make: (value: T) => R): Outcome<R> {
  return isApiError(outcome) ? outcome : make(outcome);
}

async function createFrom(deps: Deps, request: ApiRequest): Promise<Outcome<KubeObject>> {
  const object = decoded(request);
  if (isApiError(object)) return object;
  const status = request.resource.strategy.answer?.(request.user);
  return status === undefined ? create(deps, request, object) : { ...object, status };
}

async function updateFrom(deps: Deps, request: ApiRequest): Promise<Outcome<KubeObject>> {
  const object = decoded(request);
  return isApiError(object) ? object : update(deps, request, { isPut: true, next: () => object });
}

async function deleteFrom(deps: Deps, request: ApiRequest): Promise<Outcome<DeleteResult>> {
  const deletion = readDeletion(request);
  return isApiError(deletion) ? deletion : deleteObject(deps, deletion.request, deletion.options);
}

function decoded(request: ApiRequest): Outcome<KubeObject> {
  const body = decodeBody(request.body, request.contentType);
  return isApiError(body) ? body : decodeObject(request.resource, body, request);
}

function success({ resource }: ApiRequest, { metadata }: KubeObject): Status {
  const { name = '', uid } = metadata;
  const details = { ...detailsOf(resource, name), ...(uid && { uid }) };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}
