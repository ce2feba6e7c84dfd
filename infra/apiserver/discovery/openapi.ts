// OpenAPI documents: what `kubectl explain`, `apply` and `diff` read of the kinds, and no more.
import { createHash } from 'node:crypto';
import { apiVersionOf, type Resource } from '../resource.ts';
import { definitions, kubernetesVersion } from '../schema/core-schemas.ts';
import type { JsonObject } from '../schema/json.ts';

export type OpenApi = ReturnType<typeof createOpenApi>;

/**
 * The documents of `/openapi/v3` by their paths, `api/v1` or `apis/GROUP/VERSION`; made again only when the set of
 * resources changed.
 */
export function createOpenApi(all: () => readonly Resource[]) {
  let madeFor: readonly Resource[] | undefined;
  let documents: ReturnType<typeof documentsOf> = new Map();
  return () => {
    const resources = all();
    if (resources !== madeFor) documents = documentsOf(resources);
    madeFor = resources;
    return documents;
  };
}

function documentsOf(resources: readonly Resource[]) {
  return new Map(
    [...Map.groupBy(resources, apiVersionOf)].map(([groupVersion, described]) => {
      const body = documentOf(described);
      const hash = createHash('sha512').update(JSON.stringify(body)).digest('hex').toUpperCase();
      return [groupVersion.includes('/') ? `apis/${groupVersion}` : `api/${groupVersion}`, { body, hash }] as const;
    }),
  );
}

/** The kinds of a group version, and the definitions of all core kinds, which schemas refer to. */
function documentOf(resources: readonly Resource[]): JsonObject {
  const custom = resources.filter((resource) => resource.custom);
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: kubernetesVersion },
    paths: Object.fromEntries(resources.map((resource) => [objectPath(resource), { patch: patchOperation(resource) }])),
    components: {
      schemas: { ...definitions, ...Object.fromEntries(custom.map((one) => [nameOf(one), customDefinition(one)])) },
    },
  };
}

/** `dev.gateway-operator.v1.User`. */
function nameOf({ group, version, kind }: Resource): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`;
}

function objectPath(resource: Resource): string {
  const groupVersion = apiVersionOf(resource);
  const root = resource.group === '' ? `/api/${groupVersion}` : `/apis/${groupVersion}`;
  return `${root}${resource.namespaced ? '/namespaces/{namespace}' : ''}/${resource.plural}/{name}`;
}

/**
 * kubectl looks at the PATCH of a kind alone: the parameter `fieldValidation` says that the server validates fields,
 * and `kubectl apply` sends the strategic merge patch where it is offered. Custom kinds have no patch strategies.
 */
function patchOperation({ group, version, kind, custom }: Resource): JsonObject {
  const types = ['application/apply-patch+yaml', 'application/json-patch+json', 'application/merge-patch+json'];
  const offered = custom ? types : [...types, 'application/strategic-merge-patch+json'];
  return {
    parameters: ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map((name) => {
      return { name, in: 'query', schema: { type: name === 'force' ? 'boolean' : 'string' } };
    }),
    requestBody: {
      content: Object.fromEntries(offered.map((type) => [type, { schema: { type: 'object' } }])),
    },
    'x-kubernetes-group-version-kind': { group, kind, version },
  };
}

/** A custom kind's definition: its schema with apiVersion, kind and metadata. */
function customDefinition({ group, version, kind, schema }: Resource): JsonObject {
  return {
    ...schema,
    type: 'object',
    properties: {
      ...schema.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' },
    },
    'x-kubernetes-group-version-kind': [{ group, kind, version }],
  };
}

/**
 * The one form in which kubectl reads `/openapi/v2`. kubectl asks with an @ before v1.0, which no Content-Type may
 * contain.
 */
export const openApiV2Type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/**
 * `/openapi/v2` in gnostic's protobuf, with a single operation: the PATCH of `/api/v1/namespaces/{name}` with the query
 * parameter `fieldValidation`. kubectl asks there whether the server validates fields when it applies a `kind: List`.
 */
export const openApiV2: Uint8Array = Buffer.from(
  'CgMyLjASEAoKS3ViZXJuZXRlcxICdjFCqQESpgEKGS9hcGkvdjEvbmFtZXNwYWNlcy97bmFtZX0SiAFChQEqDnBhdGNoTmFtZXNwYWNl' +
    'QiYKJBIiGiASBXF1ZXJ5Ig9maWVsZFZhbGlkYXRpb24qBnN0cmluZ2pLCh94LWt1YmVybmV0ZXMtZ3JvdXAtdmVyc2lvbi1raW5kEigS' +
    'Jmdyb3VwOiAiIgpraW5kOiBOYW1lc3BhY2UKdmVyc2lvbjogdjEK',
  'base64',
);
