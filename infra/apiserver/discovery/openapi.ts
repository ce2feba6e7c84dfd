// OpenAPI documents: what `kubectl explain`, `apply` and `diff` read of the kinds, and no more.
import { createHash } from 'node:crypto';
import { apiVersionOf, type Resource } from '../resource.ts';
import { definitionName, definitions, kubernetesVersion } from '../schema/core-schemas.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { accessReviews } from './access-reviews.ts';

export type OpenApi = {
  index(): JsonObject;
  /** The document of `api/v1` or `apis/GROUP/VERSION`, with its hash. */
  document(path: string): OpenApiDocument | undefined;
};

export type OpenApiDocument = { readonly body: JsonObject; readonly hash: string };

type Described = Pick<Resource, 'group' | 'version' | 'kind' | 'plural' | 'namespaced' | 'custom' | 'schema'>;

/** Documents of `GET /openapi/v3`, made again only when the set of resources changed. */
export function createOpenApi(all: () => readonly Resource[]): OpenApi {
  let madeFor: readonly Resource[] | undefined;
  let documents: ReadonlyMap<string, OpenApiDocument> = new Map();

  function current(): ReadonlyMap<string, OpenApiDocument> {
    const resources = all();
    if (resources !== madeFor) documents = documentsOf(resources);
    madeFor = resources;
    return documents;
  }

  return {
    index() {
      const entries = [...current()].map(([path, { hash }]) => {
        return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }] as const;
      });
      return { paths: Object.fromEntries(entries) };
    },
    document: (path) => current().get(path),
  };
}

function documentsOf(resources: readonly Described[]): Map<string, OpenApiDocument> {
  const reviews = accessReviews.map((one) => ({ ...one, version: 'v1', custom: false, schema: {} }));
  const groups = Map.groupBy<string, Described>([...resources, ...reviews], apiVersionOf);
  return new Map(
    [...groups].map(([groupVersion, described]) => {
      const body = documentOf(described);
      const hash = createHash('sha512').update(JSON.stringify(body)).digest('hex').toUpperCase();
      return [groupVersion.includes('/') ? `apis/${groupVersion}` : `api/${groupVersion}`, { body, hash }];
    }),
  );
}

const referencePrefix = '#/components/schemas/';
const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1';

function documentOf(resources: readonly Described[]): JsonObject {
  const schemas: Record<string, JsonObject> = {};
  for (const resource of resources) {
    if (resource.custom) schemas[nameOf(resource)] = customDefinition(resource);
    else collect(nameOf(resource), schemas);
  }
  for (const name of ['DeleteOptions', 'Status', 'ObjectMeta']) collect(`${metaPackage}.${name}`, schemas);
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: kubernetesVersion },
    paths: Object.fromEntries(resources.map((resource) => [objectPath(resource), { patch: patchOperation(resource) }])),
    components: { schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))) },
  };
}

function nameOf(resource: Described): string {
  const { group, version, kind } = resource;
  return definitionName(apiVersionOf(resource), kind) ?? `${group.split('.').reverse().join('.')}.${version}.${kind}`;
}

function objectPath(resource: Described): string {
  const groupVersion = apiVersionOf(resource);
  const root = resource.group === '' ? `/api/${groupVersion}` : `/apis/${groupVersion}`;
  return `${root}${resource.namespaced ? '/namespaces/{namespace}' : ''}/${resource.plural}/{name}`;
}

/**
 * kubectl looks at the PATCH of a kind alone: the parameter `fieldValidation` says that the server validates fields, and
 * `kubectl apply` sends the strategic merge patch where it is offered. Custom kinds have no patch strategies.
 */
function patchOperation({ group, version, kind, custom }: Described): JsonObject {
  const types = ['application/apply-patch+yaml', 'application/json-patch+json', 'application/merge-patch+json'];
  const offered = custom ? types : [...types, 'application/strategic-merge-patch+json'];
  return {
    operationId: `patch${kind}`,
    parameters: ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map((name) => {
      return { name, in: 'query', schema: { type: name === 'force' ? 'boolean' : 'string' } };
    }),
    requestBody: {
      required: true,
      content: Object.fromEntries(offered.map((type) => [type, { schema: { type: 'object' } }])),
    },
    responses: { 200: { description: 'OK' } },
    'x-kubernetes-action': 'patch',
    'x-kubernetes-group-version-kind': { group, kind, version },
  };
}

/** A custom kind's definition: its schema with apiVersion, kind and metadata. */
function customDefinition({ group, version, kind, schema }: Described): JsonObject {
  return {
    ...schema,
    type: 'object',
    properties: {
      ...schema.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { $ref: `${referencePrefix}${metaPackage}.ObjectMeta` },
    },
    'x-kubernetes-group-version-kind': [{ group, kind, version }],
  };
}

function collect(name: string, schemas: Record<string, JsonObject>): void {
  const definition = definitions[name];
  if (definition === undefined || schemas[name]) return;
  schemas[name] = definition;
  for (const reference of references(definition)) collect(reference, schemas);
}

function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (!isObject(value)) return [];
  const here = typeof value.$ref === 'string' ? [value.$ref.slice(referencePrefix.length)] : [];
  return [...here, ...Object.values(value).flatMap(references)];
}

/** The one form in which kubectl reads `/openapi/v2`. It asks with an @ before v1.0, which no Content-Type may hold. */
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
