// Routes: the resource that a path names, and the verb that the method means.
import type { Resource } from '../resource.ts';
import type { Registry } from '../resources/registry.ts';
import type { ApiRequest, Verb } from './request.ts';

type Place = Pick<ApiRequest, 'namespace' | 'name' | 'subresource'>;
type Route = Place & Pick<ApiRequest, 'verb' | 'resource'>;
export type ResourcePath = Place & Pick<Resource, 'group' | 'version' | 'plural'>;

/** Splits `/api/v1/…` and `/apis/GROUP/VERSION/…`; undefined for every other path. */
export function parsePath(path: string): ResourcePath | undefined {
  const segments = path
    .split('/')
    .filter((segment) => segment !== '')
    .map(decodeURIComponent);
  const [root, ...rest] = segments;
  if (root !== 'api' && root !== 'apis') return undefined;
  const [group, version, ...below] = root === 'api' ? ['', ...rest] : rest;
  if (group === undefined || version === undefined || below[0] === undefined) return undefined;
  const inNamespace = below[0] === 'namespaces' && below[1] !== undefined && isInside(group, below);
  const namespace = inNamespace ? below[1] : undefined;
  const [plural, name, ...subresource] = inNamespace ? below.slice(2) : below;
  if (plural === undefined) return undefined;
  return { group, version, plural, namespace, name, subresource: subresource.join('/') || undefined };
}

/** `/api/v1/namespaces/NAME/status` is a namespace's subresource, not a kind named status. */
function isInside(group: string, below: readonly string[]): boolean {
  if (below.length < 3) return false;
  return !(group === '' && below.length === 3 && (below[2] === 'status' || below[2] === 'finalize'));
}

/** The route of a method on a path, or the part of it that is not served. */
export function routeOf(
  registry: Pick<Registry, 'find'>,
  method: string,
  path: ResourcePath,
  query: URLSearchParams,
): Route | 'resource' | 'subresource' | 'method' {
  const { namespace, name, subresource } = path;
  const resource = registry.find(path.group, path.version, path.plural);
  if (resource === undefined) return 'resource';
  if (!resource.namespaced && namespace !== undefined) return 'resource';
  if (resource.namespaced && name !== undefined && namespace === undefined) return 'resource';
  if (subresource !== undefined && !resource.subresources.some((one) => one === subresource)) return 'subresource';
  const verb = verbOf(method, path, query);
  if (verb === undefined || !resource.verbs.includes(verb)) return 'method';
  if (verb === 'create' && resource.namespaced && namespace === undefined) return 'method';
  return { verb, resource, namespace, name, subresource };
}

function verbOf(method: string, { name }: ResourcePath, query: URLSearchParams): Verb | undefined {
  const watching = ['true', '1'].includes(query.get('watch') ?? '');
  if (method === 'GET') return name !== undefined ? 'get' : watching ? 'watch' : 'list';
  if (method === 'POST') return name === undefined ? 'create' : undefined;
  if (method === 'DELETE') return name === undefined ? 'deletecollection' : 'delete';
  if (name === undefined) return undefined;
  return method === 'PUT' ? 'update' : method === 'PATCH' ? 'patch' : undefined;
}
