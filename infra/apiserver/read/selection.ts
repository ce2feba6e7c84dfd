// Which objects does a request choose, by labels, fields and namespace?
import type { KubeObject } from '../object.ts';
import { badRequest, isRefusal, type Refusal } from '../refusal.ts';
import type { Resource } from '../resources/resource.ts';
import { parseLabelSelector } from './label-selector.ts';

export type Selection = (object: KubeObject) => boolean;

/** Reads `labelSelector` and `fieldSelector` of a list, watch or deletecollection. */
export function selectionOf(resource: Resource, query: URLSearchParams): Selection | Refusal {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '');
  if (isRefusal(labels)) return labels;
  const fields = parseFieldSelector(resource, query.get('fieldSelector') ?? '');
  if (isRefusal(fields)) return fields;
  return (object) => labels(object.metadata.labels ?? {}) && fields(object);
}

function parseFieldSelector(resource: Resource, text: string): Selection | Refusal {
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
