// How are many objects deleted at once?
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import { list, type Page } from '../read/list.ts';
import { isRefusal, type Outcome } from '../refusal.ts';
import type { ApiRequest } from '../serve/request.ts';
import { readDeletion, remove } from './delete.ts';

/** Deletes what the selectors choose, one after the other; answers with what it deleted. */
export async function removeAll(deps: Deps, asked: ApiRequest): Promise<Outcome<Page>> {
  const deletion = readDeletion(asked);
  if (isRefusal(deletion)) return deletion;
  const { request, options } = deletion;
  const page = list(deps, request);
  if (isRefusal(page)) return page;
  const objects: KubeObject[] = [];
  for (const { metadata } of page.objects) {
    const one = { ...request, namespace: metadata.namespace, name: metadata.name };
    const deleted = await remove(deps, one, options);
    if (!isRefusal(deleted)) objects.push(deleted.object);
    else if (deleted.refusal.code !== 404) return deleted;
  }
  return { objects, metadata: { resourceVersion: String(deps.store.revision()) } };
}
