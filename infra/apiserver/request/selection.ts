// Which objects does a request choose, by labels, fields and namespace?

import { type ApiError, badRequest, isApiError } from '../api-error.ts';
import type { KubeObject } from '../object.ts';
import type { Resource } from '../resource.ts';
import { parseLabelSelector } from './label-selector.ts';

export type Selection = (object: KubeObject) => boolean;

/** Reads `labelSelector` and `fieldSelector` of a list, watch or deletecollection. */
export function selectionOf(resource: Resource, query: URLSearchParams): Selection | ApiError {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '');
  if (isApiError(labels)) return labels;
  const fields = parseFieldSelector(resource, query.get('fieldSelector') ?? '');
  if (isApiError(fields)) return fields;
  return (object) => labels(object.metadata.labels ?? {}) && fields(object);
}

function parseFieldSelector(resource: Resource, text: string): Selection | ApiError {
  const tests: Selection[] = [];
  for (const part of text.split(/(?<!\\),/)) {
    if (part === '') continue;
    const match = /^((?:[^=!\\]|\\.)+)(==|=|!=)(.*)$/s.exec(part);
    if (match === null) return badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
    const [, path = '', operator, value = ''] = match;
    const read = fieldOf(resource, path);
    if (read === undefined) return badRequest(unknownField(resource, path));
    const wanted = value.replace(/\\([\\,=])/g, '$1');
    tests.push((object) => (read(object) === wanted) === (operator !== '!='));
  }
  return (object) => tests.every((test) => test(object));
}

function fieldOf(resource: Resource, path: string): ((object: KubeObject) => string) | undefined {
  if (path === 'metadata.name') return ({ metadata }) => metadata.name ?? '';
  if (path === 'metadata.namespace' && resource.namespaced) return ({ metadata }) => metadata.namespace ?? '';
  const { selectable = {} } = resource.strategy;
  return Object.hasOwn(selectable, path) ? selectable[path] : undefined;
}

function unknownField({ custom, strategy }: Resource, path: string): string {
  if (custom || strategy.selectable !== undefined) return `field label not supported: ${path}`;
  return `"${path}" is not a known field selector: only "metadata.name", "metadata.namespace"`;
}
