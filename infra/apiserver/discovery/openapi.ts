// Which schema documents does kubectl get for explain, apply and diff?

import { apiVersionOf, type Resource } from '../resource.ts';
import type { JsonObject } from '../schema/json.ts';
import { accessReviews } from './access-reviews.ts';
import { documentHash, openapiPath, openapiV3Document, openapiV3Index } from './openapi-documents.ts';

export type OpenApi = {
  index(): JsonObject;
  /** The document of `api/v1` or `apis/GROUP/VERSION`, with its hash. */
  document(path: string): { readonly body: JsonObject; readonly hash: string } | undefined;
};

/** Made anew only when the set of resources changed. */
export function createOpenApi(all: () => readonly Resource[]): OpenApi {
  let madeFor: readonly Resource[] | undefined;
  let documents: Readonly<Record<string, JsonObject>> = {};

  function present(): Readonly<Record<string, JsonObject>> {
    const resources = all();
    if (resources === madeFor) return documents;
    const reviews = accessReviews.map((one) => ({
      ...one,
      version: 'v1',
      custom: false,
      schema: {},
      subresources: [],
    }));
    const groups = Map.groupBy([...resources, ...reviews], apiVersionOf);
    const made = [...groups].map(([groupVersion, entries]) => {
      const described = entries.map(({ kind, plural, namespaced, subresources, custom, schema }) => {
        return { kind, plural, namespaced, subresources, ...(custom && { schema }) };
      });
      return [groupVersion, openapiV3Document(groupVersion, described)] as const;
    });
    documents = Object.fromEntries(made);
    madeFor = resources;
    return documents;
  }

  return {
    index: () => openapiV3Index(present()),
    document(path) {
      const found = Object.entries(present()).find(([groupVersion]) => openapiPath(groupVersion) === path);
      return found && { body: found[1], hash: documentHash(found[1]) };
    },
  };
}
