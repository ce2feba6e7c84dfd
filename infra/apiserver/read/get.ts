// What is stored under this name?

import { notFound, type Outcome } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { keyOf, type Resource, shown } from '../resource.ts';
import type { JsonObject } from '../schema/json.ts';
import { partialMetadata, type Representation, tableOf } from './representation.ts';

export function get({ store }: Deps, { resource, namespace, name = '' }: ApiRequest): Outcome<KubeObject> {
  const stored = store.get(keyOf(resource, namespace, name));
  return stored === undefined ? notFound(resource, name) : shown(resource, stored);
}

/** One object in the form that was asked for. */
export function present(resource: Resource, object: KubeObject, form: Representation, now: number): JsonObject {
  if (form.shape === 'metadata') return partialMetadata(object);
  if (form.shape === 'object') return object;
  const listMeta = { resourceVersion: object.metadata.resourceVersion };
  return tableOf({ objects: [object], columns: resource.columns, now, listMeta }, form);
}
