// Paths that are no resources: health, version, discovery, OpenAPI.
import { groupList, groupOf, resourceList } from '../discovery/discovery.ts';
import { type OpenApi, openApiV2, openApiV2Type } from '../discovery/openapi.ts';
import { apiVersionOf } from '../resource.ts';
import type { Registry } from '../resources/registry.ts';
import { kubernetesVersion } from '../schema/core-schemas.ts';
import type { JsonObject } from '../schema/json.ts';
import type { PlainResponse } from './write-response.ts';

type Deps = { readonly registry: Registry; readonly openApi: OpenApi };

/** Answers that need no token: probes and `kubectl version` ask before they have one. */
export function publicResponse(path: string): PlainResponse | undefined {
  if (/^\/(healthz|livez|readyz)(\/.*)?$/.test(path)) return { body: 'ok', contentType: 'text/plain; charset=utf-8' };
  return path === '/version' || path === '/version/' ? { body: version() } : undefined;
}

export function plainResponse({ registry, openApi }: Deps, path: string): PlainResponse | undefined {
  const segments = path.split('/').filter((segment) => segment !== '');
  const [first, second, third] = segments;
  const resources = registry.all();
  if (first === undefined) {
    const versions = new Set(resources.map((one) => (one.group === '' ? '/api/v1' : `/apis/${apiVersionOf(one)}`)));
    return { body: { paths: ['/api', '/apis', ...versions, '/healthz', '/openapi/v3', '/readyz', '/version'] } };
  }
  if (path === '/openapi/v2') return { body: openApiV2, contentType: openApiV2Type };
  if (first === 'openapi' && second === 'v3') return openApiResponse(openApi, segments.slice(2).join('/'));
  if (path === '/api') return { body: { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] } };
  if (path === '/apis') return { body: groupList(resources) };
  if (first === 'api' && segments.length === 2) return found(resourceList(resources, '', second ?? ''));
  if (first === 'apis' && segments.length === 2) return found(groupOf(resources, second ?? ''));
  if (first === 'apis' && segments.length === 3) return found(resourceList(resources, second ?? '', third ?? ''));
  return undefined;
}

function openApiResponse(openApi: OpenApi, path: string): PlainResponse | undefined {
  if (path !== '') {
    const document = openApi().get(path);
    return document && { body: document.body, headers: { etag: `"${document.hash}"` } };
  }
  const entries = [...openApi()].map(([path, { hash }]) => {
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }] as const;
  });
  return { body: { paths: Object.fromEntries(entries) } };
}

function found(body: JsonObject | undefined): PlainResponse | undefined {
  return body && { body };
}

const notForProduction =
  'This is an API server for trying and testing only. It runs no Pods, enforces no RBAC and has one token. Never use it in production.';

/** `/version`: that of the Kubernetes whose schemas are served and whose answers are matched. */
function version(): JsonObject {
  return {
    major: '1',
    minor: kubernetesVersion.split('.')[1],
    gitVersion: `${kubernetesVersion}+node`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node-${process.version}`,
    compiler: 'node',
    platform: `${process.platform}/${process.arch}`,
    note: notForProduction,
  };
}
