// Reads: one object, or a list a page at a time.

import { apiError, badRequest, expired, isApiError, notFound, type Outcome } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { selectionOf } from '../request/selection.ts';
import { keyOf, shown } from '../resource.ts';
import type { Page } from './representation.ts';

export function get({ store }: Deps, { resource, namespace, name = '' }: ApiRequest): Outcome<KubeObject> {
  const stored = store.get(keyOf(resource, namespace, name));
  return stored === undefined ? notFound(resource, name) : shown(resource, stored);
}

/** Where the next page begins: after `after`; `at` is the revision of the first page. */
type Continue = { readonly at: number; readonly after: string };

/**
 * Pages show the objects at the time of their request. All have the first one's resourceVersion, so that a watch from
 * it misses nothing.
 */
export function list({ store }: Deps, request: ApiRequest): Outcome<Page> {
  const { resource, namespace, query } = request;
  const selection = selectionOf(resource, query);
  if (isApiError(selection)) return selection;
  const start = startOf(query, store.revision());
  if (isApiError(start)) return start;
  const all = store.list(resource.storedAs, resource.namespaced ? namespace : undefined);
  const rest = start.after === '' ? all : all.filter((object) => pathOf(object) > start.after);
  return page(rest.filter(selection), request, start.at);
}

function startOf(query: URLSearchParams, revision: number): Outcome<Continue> {
  const token = query.get('continue');
  if (token) return readToken(token);
  const wanted = query.get('resourceVersion') ?? '';
  if (wanted === '' || wanted === '0') return { at: revision, after: '' };
  if (!/^\d+$/.test(wanted))
    return badRequest(
      `invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(wanted)}: must be a number`,
    );
  if (Number(wanted) > revision) {
    const message = `Timeout: Too large resource version: ${wanted}, current: ${revision}`;
    const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
    return apiError(504, 'Timeout', message, { causes, retryAfterSeconds: 1 });
  }
  if (query.get('resourceVersionMatch') === 'Exact' && Number(wanted) < revision) {
    return expired(`The resourceVersion for the provided list is too old: ${wanted}; lists show the present only.`);
  }
  return { at: revision, after: '' };
}

function readToken(token: string): Outcome<Continue> {
  try {
    const { at, after } = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
    if (Number.isSafeInteger(at) && typeof after === 'string') return { at, after };
  } catch {} // whatever it was, it was not ours
  return badRequest('invalid continue token: continue key is not valid');
}

function page(chosen: readonly KubeObject[], { resource, query }: ApiRequest, at: number): Page {
  const limit = Number(query.get('limit') ?? 0);
  const listed = limit > 0 ? chosen.slice(0, limit) : chosen;
  const objects = listed.map((object) => shown(resource, object));
  const last = listed.at(-1);
  if (last === undefined || listed.length === chosen.length)
    return { objects, metadata: { resourceVersion: String(at) } };
  const token = Buffer.from(JSON.stringify({ at, after: pathOf(last) })).toString('base64url');
  return { objects, metadata: { resourceVersion: String(at), continue: token } };
}

function pathOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
}
