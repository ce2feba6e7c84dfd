// Watches: the changes of objects from now, or from a resourceVersion on.

import { expired, isApiError, type Outcome, type Status } from '../api-error.ts';
import { toTable } from '../codec/table.ts';
import type { Deps } from '../deps.ts';
import { type KubeObject, withMeta } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { type Selection, selectionOf } from '../request/selection.ts';
import { apiVersionOf, type Resource, shown } from '../resource.ts';
import type { JsonObject } from '../schema/json.ts';
import type { StoredEvent } from '../store/database.ts';
import type { Representation } from './representation.ts';

export type WatchEvent = { readonly type: string; readonly object: JsonObject | Status };

/** Sends events until the returned way to stop is taken; `end` is called when the watch is over by itself. */
export type Watch = (send: (event: WatchEvent) => void, end: () => void) => () => void;

const bookmarkEvery = 60_000;

/**
 * A watch of one kind: from now, or from a resourceVersion on, also over a restart of the server; too old is 410 in the
 * stream.
 */
export function watch(deps: Deps, request: ApiRequest, form: Representation): Outcome<Watch> {
  const selection = selectionOf(request.resource, request.query);
  if (isApiError(selection)) return selection;
  return (send, end) => run(deps, { ...request, selection, show: shower(deps, request, form) }, send, end);
}

type WatchRequest = ApiRequest & { readonly selection: Selection; readonly show: (object: KubeObject) => JsonObject };

function run({ store }: Deps, watched: WatchRequest, ...[send, end]: Parameters<Watch>): () => void {
  const { resource, namespace, query, selection, show } = watched;
  const wanted = query.get('resourceVersion') ?? '';
  const initial = query.get('sendInitialEvents') === 'true' || wanted === '' || wanted === '0';
  const bookmarks = query.get('allowWatchBookmarks') === 'true';
  const past = initial ? [] : pastEvents(store, wanted);
  if (past === undefined) {
    send({ type: 'ERROR', object: tooOld(wanted, store).status });
    end();
    return () => {};
  }
  const bookmark = (annotations?: Record<string, string>) =>
    send({ type: 'BOOKMARK', object: show(markOf(resource, store.revision(), annotations)) });
  const present = initial ? store.list(resource.storedAs, namespace).filter(selection) : [];
  for (const object of present) send({ type: 'ADDED', object: show(object) });
  if (query.get('sendInitialEvents') === 'true') bookmark({ 'k8s.io/initial-events-end': 'true' });
  const pass = (event: StoredEvent) => {
    if (event.resource !== resource.storedAs || (namespace !== undefined && event.namespace !== namespace)) return;
    const seen = seenAs(event, selection);
    if (seen !== undefined) send({ type: seen.type, object: show(seen.object) });
  };
  for (const event of past) pass(event);
  const unsubscribe = store.subscribe((event) => {
    try {
      pass(event);
    } catch (error) {
      // A watch that has missed a change ends, so that its client lists anew.
      stop();
      end();
      throw error;
    }
  });
  const ticking = bookmarks ? setInterval(() => bookmark(), bookmarkEvery) : undefined;
  const stop = () => {
    unsubscribe();
    clearInterval(ticking);
    clearTimeout(ending);
  };
  const ending = setTimeout(() => {
    if (bookmarks) bookmark();
    stop();
    end();
  }, secondsOf(query) * 1000);
  return stop;
}

/** A revision that is still to come can only be another cluster's: as unknown as one that is too old. */
function pastEvents(store: Deps['store'], wanted: string): readonly StoredEvent[] | undefined {
  const revision = Number(wanted);
  return Number.isSafeInteger(revision) && revision <= store.revision() ? store.since(revision) : undefined;
}

function tooOld(wanted: string, store: Deps['store']) {
  return expired(`too old resource version: ${wanted} (${store.compactedRevision() + 1})`);
}

/** An object that begins to fit the selection is ADDED, one that ceases to is DELETED. */
function seenAs(
  { type, object, previous, revision }: StoredEvent,
  fits: Selection,
): { type: string; object: KubeObject } | undefined {
  const before = previous !== undefined && fits(previous);
  if (type === 'DELETED') return before ? { type, object } : undefined;
  if (fits(object)) return { type: before ? 'MODIFIED' : 'ADDED', object };
  return before ? { type: 'DELETED', object: withMeta(previous, { resourceVersion: String(revision) }) } : undefined;
}

/** As asked, else between half an hour and an hour, so that clients do not come back all together. */
function secondsOf(query: URLSearchParams): number {
  const asked = Number(query.get('timeoutSeconds'));
  return asked > 0 ? Math.min(asked, 86_400) : 1800 * (1 + Math.random());
}

function markOf(resource: Resource, revision: number, annotations: Record<string, string> | undefined): KubeObject {
  return {
    kind: resource.kind,
    apiVersion: apiVersionOf(resource),
    metadata: { resourceVersion: String(revision), creationTimestamp: null, ...(annotations && { annotations }) },
  };
}

/** The first table of a watch has the column definitions, the others rely on them. */
function shower({ now }: Deps, { resource }: ApiRequest, form: Representation): (object: KubeObject) => JsonObject {
  let first = true;
  return (stored) => {
    const object = shown(resource, stored);
    if (!form.isTable) return object;
    const objects = stored.metadata.uid === undefined ? [] : [object]; // a bookmark has no row
    const listMeta = { resourceVersion: stored.metadata.resourceVersion };
    const { columns } = resource;
    const table = toTable(objects, { columns, now: now(), include: form.include, listMeta, definitions: first });
    first = false;
    return table;
  };
}
