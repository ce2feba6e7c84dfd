// How are many objects deleted at once?

import { isApiError, type Outcome } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import { list, type Page } from '../read/list.ts';
import type { ApiRequest } from '../request/request.ts';
import { readDeletion, remove } from './delete.ts';

/** Deletes what the selectors choose, one after the other; answers with what it deleted. */
export async function deleteCollection(deps: Deps, asked: ApiRequest): Promise<Outcome<Page>> {
  const deletion = readDeletion(asked);
  if (isApiError(deletion)) return deletion;
  const { request, options } = deletion;
  const page = list(deps, request);
  if (isApiError(page)) return page;
  const objects: KubeObject[] = [];
  for (const { metadata } of page.objects) {
    const one = { ...request, namespace: metadata.namespace, name: metadata.name };
    const deleted = await remove(deps, one, options);
    if (!isApiError(deleted)) objects.push(deleted.object);
    else if (deleted.status.code !== 404) return deleted;
  }
  return { objects, metadata: { resourceVersion: String(deps.store.revision()) } };
}
