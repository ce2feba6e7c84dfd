// Which paths and parameters has a resource in an OpenAPI document?

import { definitionName } from '../schema/core-schemas.ts';
import type { JsonObject } from '../schema/json.ts';

type Described = {
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly subresources?: readonly string[];
  /** A custom kind brings its own. */
  readonly schema?: object;
};

const query = (name: string, type: string, description: string) => ({
  name,
  in: 'query',
  description,
  schema: { type, uniqueItems: true },
});

const dryRun = query(
  'dryRun',
  'string',
  'When present, indicates that modifications should not be persisted. Valid values are: - All: all dry run stages will be processed',
);
const fieldManager = query(
  'fieldManager',
  'string',
  'fieldManager is a name associated with the actor or entity that is making these changes.',
);
// kubectl looks for this parameter at the PATCH of a kind to decide whether the server validates fields.
const fieldValidation = query(
  'fieldValidation',
  'string',
  'fieldValidation instructs the server on how to handle objects in the request (POST/PUT/PATCH) containing unknown or duplicate fields. Valid values are: Ignore, Warn, Strict.',
);
const force = query(
  'force',
  'boolean',
  'Force is going to "force" Apply requests: re-acquire conflicting fields owned by other people.',
);

const writing = [dryRun, fieldManager, fieldValidation];
const patchTypes = ['application/apply-patch+yaml', 'application/json-patch+json', 'application/merge-patch+json'];
// `kubectl apply` sends this where a kind's PATCH offers it; custom kinds have no patch strategies, so they do not.
const strategicMerge = 'application/strategic-merge-patch+json';

/** The collection's path, the object's and those of its subresources. */
export function openapiPaths(groupVersion: string, resource: Described): JsonObject {
  const root = groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`;
  const collection = `${root}${resource.namespaced ? '/namespaces/{namespace}' : ''}/${resource.plural}`;
  const object = `${collection}/{name}`;
  const inPath = (...names: string[]) =>
    names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
  const space = resource.namespaced ? ['namespace'] : [];
  const say = operations(groupVersion, resource);
  const paths: JsonObject = {
    [collection]: { get: say.list, post: say.post, delete: say.deletecollection, parameters: inPath(...space) },
    [object]: {
      get: say.get,
      put: say.put,
      patch: say.patch,
      delete: say.delete,
      parameters: inPath('name', ...space),
    },
  };
  if (resource.namespaced) paths[`${root}/${resource.plural}`] = { get: say.list };
  for (const name of resource.subresources ?? []) {
    paths[`${object}/${name}`] = { get: say.get, put: say.put, patch: say.patch, parameters: inPath('name', ...space) };
  }
  return paths;
}

function operations(groupVersion: string, { kind, schema }: Described): Record<string, JsonObject> {
  const slash = groupVersion.indexOf('/');
  const [group, version] =
    slash < 0 ? ['', groupVersion] : [groupVersion.slice(0, slash), groupVersion.slice(slash + 1)];
  const name = definitionName(groupVersion, kind) ?? `${group.split('.').reverse().join('.')}.${version}.${kind}`;
  const body = { schema: { $ref: `#/components/schemas/${name}` } };
  const answer = { 200: { description: 'OK', content: { 'application/json': body } } };
  const operation = (action: string, parameters: readonly unknown[], content?: JsonObject): JsonObject => ({
    tags: [`${(group || 'core').replace(/\W/g, '')}_${version}`],
    operationId: `${action}${kind}`,
    parameters,
    ...(content ? { requestBody: { required: true, content } } : {}),
    responses: answer,
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, kind, version },
  });
  const patch = Object.fromEntries(
    (schema ? patchTypes : [...patchTypes, strategicMerge]).map((type) => [type, { schema: { type: 'object' } }]),
  );
  return {
    list: operation('list', []),
    get: operation('get', []),
    post: operation('post', writing, { '*/*': body }),
    put: operation('put', writing, { '*/*': body }),
    patch: operation('patch', [...writing, force], patch),
    delete: operation('delete', [dryRun]),
    deletecollection: operation('deletecollection', [dryRun]),
  };
}
