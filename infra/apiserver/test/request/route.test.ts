import { expect, test } from 'vitest';
import { silentLog } from '../../../../test/support/silent-log.ts';
import { parsePath, routeOf } from '../../request/route.ts';
import { createRegistry } from '../../resources/registry.ts';

const registry = createRegistry({ list: () => [], get: () => undefined, subscribe: () => () => {} }, silentLog);

const routed = (method: string, path: string) => {
  const url = new URL(path, 'https://x');
  const place = parsePath(url.pathname);
  const route = place && routeOf(registry, method, place, url.searchParams);
  if (route === undefined || typeof route === 'string') return route;
  return [route.verb, route.resource.plural, route.namespace, route.name, route.subresource];
};

test.each([
  ['GET', '/api/v1/namespaces', ['list', 'namespaces', undefined, undefined, undefined]],
  ['GET', '/api/v1/namespaces/a', ['get', 'namespaces', undefined, 'a', undefined]],
  ['PATCH', '/api/v1/namespaces/a/status', ['patch', 'namespaces', undefined, 'a', 'status']],
  ['PUT', '/api/v1/namespaces/a/finalize', ['update', 'namespaces', undefined, 'a', 'finalize']],
  ['GET', '/api/v1/namespaces/a/secrets?watch=true', ['watch', 'secrets', 'a', undefined, undefined]],
  ['GET', '/api/v1/secrets?watch=1', ['watch', 'secrets', undefined, undefined, undefined]],
  ['POST', '/apis/apps/v1/namespaces/a/deployments', ['create', 'deployments', 'a', undefined, undefined]],
  ['PUT', '/apis/apps/v1/namespaces/a/deployments/d/status', ['update', 'deployments', 'a', 'd', 'status']],
  ['DELETE', '/api/v1/namespaces/a/secrets/s', ['delete', 'secrets', 'a', 's', undefined]],
  ['DELETE', '/api/v1/namespaces/a/secrets', ['deletecollection', 'secrets', 'a', undefined, undefined]],
  [
    'GET',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin',
    ['get', 'clusterroles', undefined, 'system:admin', undefined],
  ],
])('%s %s is understood', (method, path, wanted) => {
  expect(routed(method, path)).toEqual(wanted);
});

test.each([
  ['POST', '/api/v1/secrets', 'method'],
  ['DELETE', '/api/v1/namespaces', 'method'],
  ['POST', '/api/v1/namespaces/a/pods', 'method'],
  ['PUT', '/api/v1/namespaces/a/secrets', 'method'],
  ['GET', '/api/v1/secrets/s', 'resource'],
  ['GET', '/api/v1/namespaces/a/clusterroles', 'resource'],
  ['GET', '/api/v1/namespaces/a/nothing', 'resource'],
  ['GET', '/api/v2/namespaces', 'resource'],
  ['PUT', '/apis/apps/v1/namespaces/a/deployments/d/scale', 'subresource'],
  ['POST', '/api/v1/namespaces/a/pods/p/exec', 'subresource'],
  ['GET', '/metrics', undefined],
])('%s %s is no request on a resource (%s)', (method, path, wanted) => {
  expect(routed(method, path)).toBe(wanted);
});
