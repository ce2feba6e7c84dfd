// A stand-in for an API server with very many objects: it keeps JSON, pages lists and merges patches.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';

export interface StandIn {
  readonly url: string;
  put(resource: Resource, object: KubeObject): void;
  get(resource: Resource, namespace: string, name: string): KubeObject;
  /** Called for each write to a named object. */
  onWrite: (plural: string, name: string) => void;
  stop(): Promise<void>;
}

interface KeptObject {
  object: KubeObject;
  text: string;
}

/** Managed fields as on a real API server, one set per writer: more than half of a list's bytes. */
const managed = (manager: string, fields: object) => ({
  manager,
  operation: 'Update',
  apiVersion: 'auth.gateway-operator.dev/v1alpha1',
  time: '2026-11-21T12:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: fields,
});
const fieldsOf = (value: unknown): object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [`f:${name}`, fieldsOf(member)]))
    : {};

/**
 * Merge patches, with a status subresource; finalizers, owners, generations and versions as far as reconcile sees them.
 */
export async function startStandIn(): Promise<StandIn> {
  const folders = new Map<string, Map<string, KeptObject>>();
  let version = 1000;
  let uids = 0;

  const folder = (path: string) => {
    const found = folders.get(path) ?? new Map<string, KeptObject>();
    folders.set(path, found);
    return found;
  };
  const keep = (path: string, id: string, object: KubeObject): KeptObject => {
    version += 1;
    const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
    const managedFields = [
      managed(
        'kubectl-client-side-apply',
        fieldsOf({ metadata: { annotations: metadata.annotations }, spec: object.spec }),
      ),
      managed('gateway-operator', fieldsOf({ metadata: { finalizers: {} }, status: object.status })),
    ];
    const kept = {
      ...object,
      metadata: { ...metadata, resourceVersion: String(version), managedFields },
    } as KubeObject;
    const entry = { object: kept, text: JSON.stringify(kept) };
    folder(path).set(id, entry);
    return entry;
  };
  const insert = (path: string, object: KubeObject): KeptObject => {
    uids += 1;
    const uid = `00000000-0000-4000-8000-${String(uids).padStart(12, '0')}`;
    const { namespace, name } = object.metadata;
    const metadata = { creationTimestamp: '2026-11-21T12:00:00Z', generation: 1, uid, ...object.metadata };
    return keep(path, `${namespace}/${name}`, { ...object, metadata });
  };

  function answer(method: string, url: URL, body: string): readonly [number, string] {
    const { group, namespace, plural, name } = parse(url.pathname);
    const path = `${group}/${plural}`;
    const verb = method === 'GET' ? (name === undefined ? 'list' : 'get') : method.toLowerCase();
    const all = folder(path);
    if (verb === 'list') return [200, listed(all, url, namespace)];
    if (verb === 'post') {
      const object = JSON.parse(body) as KubeObject;
      const id = `${namespace}/${object.metadata.name}`;
      if (all.has(id)) return [409, status('AlreadyExists', 409)];
      return [201, insert(path, object).text];
    }
    const id = `${namespace}/${name}`;
    const found = all.get(id);
    if (found === undefined) return [404, status('NotFound', 404)];
    if (verb === 'get') return [200, found.text];
    if (verb === 'delete') {
      all.delete(id);
      return [200, '{}'];
    }
    standIn.onWrite(plural, name ?? '');
    const patch = JSON.parse(body) as Record<string, unknown>;
    const wanted = (patch.metadata as { resourceVersion?: string } | undefined)?.resourceVersion;
    if (wanted !== undefined && wanted !== found.object.metadata.resourceVersion) return [409, status('Conflict', 409)];
    return [200, keep(path, id, merge(found.object, patch) as KubeObject).text];
  }

  const server = createServer((request, response) => void serve(request, response));
  // The timeout of a real one: a resync sends nothing while it counts.
  server.keepAliveTimeout = 120_000;
  async function serve(request: IncomingMessage, response: ServerResponse) {
    let body = '';
    for await (const part of request) body += part;
    const [code, text] = answer(request.method ?? '', new URL(request.url ?? '/', 'http://stand-in'), body);
    response.writeHead(code, { 'content-type': 'application/json' }).end(text);
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const standIn: StandIn = {
    url: `http://127.0.0.1:${port}`,
    put: ({ group, plural }, object) => void insert(`${group}/${plural}`, object),
    get: ({ group, plural }, namespace, name) => {
      const found = folder(`${group}/${plural}`).get(`${namespace}/${name}`);
      if (found === undefined) throw new Error(`no ${plural} ${namespace}/${name}`);
      return found.object;
    },
    onWrite: () => undefined,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return standIn;
}

/** A page of a list. The token is an insertion index: nothing is inserted while a list is paged here. */
function listed(all: ReadonlyMap<string, KeptObject>, url: URL, namespace: string | undefined): string {
  const limit = Number(url.searchParams.get('limit') ?? Number.MAX_SAFE_INTEGER);
  const from = Number(url.searchParams.get('continue') ?? 0);
  const wanted = /^spec\.connectionRef\.instanceRef\.name=(.*)$/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1];
  const fits = ({ object }: KeptObject) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (wanted === undefined || instanceOf(object) === wanted);
  const page = all.values().filter(fits).drop(from).take(limit).toArray();
  const next = page.length === limit && from + limit < all.size ? String(from + limit) : '';
  const metadata = JSON.stringify({ resourceVersion: '1', ...(next === '' ? {} : { continue: next }) });
  return `{"kind":"List","apiVersion":"v1","metadata":${metadata},"items":[${page.map(({ text }) => text).join(',')}]}`;
}

const instanceOf = ({ spec }: KubeObject) =>
  (spec as { connectionRef?: { instanceRef: { name: string } } }).connectionRef?.instanceRef.name;

function parse(pathname: string) {
  const parts = pathname.split('/').slice(1).map(decodeURIComponent);
  const rest = parts[0] === 'api' ? parts.slice(2) : parts.slice(3);
  const group = parts[0] === 'api' ? '' : (parts[1] ?? '');
  const isNamespaced = rest[0] === 'namespaces' && rest.length > 2;
  const [plural = '', name] = isNamespaced ? rest.slice(2) : rest;
  return { group, namespace: isNamespaced ? rest[1] : undefined, plural, name };
}

const status = (reason: string, code: number) =>
  JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message: reason, code });

function merge(old: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const into: Record<string, unknown> = { ...(typeof old === 'object' && old !== null ? old : {}) };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete into[name];
    else into[name] = merge(into[name], value);
  }
  return into;
}
