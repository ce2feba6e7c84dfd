// What does /openapi/v3 say: which group versions there are, and the schema and parameters of each one's kinds?
import { createHash } from 'node:crypto';
import { definitionName, definitions } from '../schema/core-schemas.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { openapiPaths } from './openapi-paths.ts';

export { coreSchema } from '../schema/core-schemas.ts';

/** A resource to be described. A custom one brings the `openAPIV3Schema` of its version; core kinds have their own. */
export type OpenapiResource = {
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly schema?: object;
  /** Further path segments under an object that can be read and written: `status`, `scale`. */
  readonly subresources?: readonly string[];
};

const referencePrefix = '#/components/schemas/';
const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1';

const kindDescription =
  'Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds';
const versionDescription =
  'APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources';
const metadataDescription =
  "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/** `GET /openapi/v3`. Keys are group versions (`v1`, `apps/v1`), values their documents; an address carries its document's hash. */
export function openapiV3Index(documents: Readonly<Record<string, JsonObject>>): JsonObject {
  const paths = Object.entries(documents).map(([groupVersion, document]) => {
    const path = openapiPath(groupVersion);
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${documentHash(document)}` }] as const;
  });
  return { paths: Object.fromEntries(paths) };
}

/** `v1` → `api/v1`, `apps/v1` → `apis/apps/v1`: what follows `/openapi/v3/`. */
export function openapiPath(groupVersion: string): string {
  return groupVersion.includes('/') ? `apis/${groupVersion}` : `api/${groupVersion}`;
}

const hashes = new WeakMap<JsonObject, string>();

/** The hash that stands in the index, and in the ETag of the document's answer. A document is not changed once it is made. */
export function documentHash(document: JsonObject): string {
  const known = hashes.get(document);
  if (known !== undefined) return known;
  const hash = createHash('sha512').update(JSON.stringify(document)).digest('hex').toUpperCase();
  hashes.set(document, hash);
  return hash;
}

/** `GET /openapi/v3/apis/GROUP/VERSION`: enough for explain, for apply with strict validation, and for diff. */
export function openapiV3Document(groupVersion: string, resources: readonly OpenapiResource[]): JsonObject {
  const schemas: Record<string, JsonObject> = {};
  for (const resource of resources) {
    const name = definitionName(groupVersion, resource.kind);
    if (resource.schema) Object.assign(schemas, customKind(groupVersion, resource));
    else if (name !== undefined) collect(name, schemas);
  }
  for (const name of ['DeleteOptions', 'Status', 'ObjectMeta']) collect(`${metaPackage}.${name}`, schemas);
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.34.4' },
    paths: Object.assign({}, ...resources.map((resource) => openapiPaths(groupVersion, resource))),
    components: { schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))) },
  };
}

/** A custom kind's definition, as the API server publishes it: its schema with apiVersion, kind and metadata described. */
function customKind(groupVersion: string, { kind, schema }: OpenapiResource): Record<string, JsonObject> {
  const [group = '', version = ''] = groupVersion.split('/');
  const own = (schema ?? {}) as JsonObject;
  const properties = isObject(own.properties) ? own.properties : {};
  const definition = {
    ...own,
    type: 'object',
    properties: {
      ...properties,
      apiVersion: { type: 'string', description: versionDescription },
      kind: { type: 'string', description: kindDescription },
      metadata: { description: metadataDescription, allOf: [{ $ref: `${referencePrefix}${metaPackage}.ObjectMeta` }] },
    },
    'x-kubernetes-group-version-kind': [{ group, kind, version }],
  };
  return { [`${group.split('.').reverse().join('.')}.${version}.${kind}`]: definition };
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
