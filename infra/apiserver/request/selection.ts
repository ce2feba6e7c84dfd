// Selectors: which objects a request or a webhook chooses, by labels and fields.
import { type ApiError, badRequest, isApiError } from '../api-error.ts';
import type { KubeObject } from '../object.ts';
import type { Resource } from '../resource.ts';
import { isObject, listAt, objectAt } from '../schema/json.ts';

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

export type Labels = Readonly<Record<string, string>>;
export type LabelSelector = (labels: Labels) => boolean;

const keyPattern = '[A-Za-z0-9][-A-Za-z0-9_./]*';
const valuePattern = '[-A-Za-z0-9_.]*';
const requirement = new RegExp(
  `^\\s*(?:!\\s*(${keyPattern})|(${keyPattern})\\s*(?:(==|=|!=|>|<)\\s*(${valuePattern})|(in|notin)\\s*\\(([^)]*)\\))?)\\s*$`,
);

/** Parses `a=b,c!=d,e in (f,g),!h`. An empty text chooses everything. */
export function parseLabelSelector(text: string): LabelSelector | ApiError {
  const tests: LabelSelector[] = [];
  for (const part of splitOutside(text)) {
    if (part.trim() === '') continue;
    const test = toTest(part);
    if (test === undefined)
      return badRequest(
        `unable to parse requirement: ${JSON.stringify(part)} in label selector ${JSON.stringify(text)}`,
      );
    tests.push(test);
  }
  return (labels) => tests.every((test) => test(labels));
}

/** Splits at commas that are not inside parentheses. */
function splitOutside(text: string): string[] {
  return text.match(/(?:[^,(]|\([^)]*\)?)+/g) ?? [];
}

function toTest(part: string): LabelSelector | undefined {
  const match = requirement.exec(part);
  if (match === null) return undefined;
  const [, absent, key = '', sign, value = '', set, list = ''] = match;
  if (absent !== undefined) return meets(absent, 'DoesNotExist');
  if (set !== undefined) {
    const values = list.split(',').map((one) => one.trim());
    return meets(key, set === 'in' ? 'In' : 'NotIn', values);
  }
  if (sign === undefined) return meets(key, 'Exists');
  if (sign === '>') return (labels) => has(labels, key) && Number(labels[key]) > Number(value);
  if (sign === '<') return (labels) => has(labels, key) && Number(labels[key]) < Number(value);
  return meets(key, sign === '!=' ? 'NotIn' : 'In', [value]);
}

/** The selector of an object (`matchLabels`, `matchExpressions`), as webhook configurations have it. */
export function toLabelSelector(selector: unknown): LabelSelector {
  if (!isObject(selector)) return () => true;
  const labelled = Object.entries(objectAt(selector, 'matchLabels')).map(([key, value]) => meets(key, 'In', [value]));
  const expressions = listAt(selector, 'matchExpressions').filter(isObject);
  const tests = expressions.map(({ key, operator, values }) => {
    return meets(String(key), String(operator), Array.isArray(values) ? values : []);
  });
  return (labels) => [...labelled, ...tests].every((test) => test(labels));
}

/** One requirement, by the operator that `matchExpressions` has for it. */
function meets(key: string, operator: string, values: readonly unknown[] = []): LabelSelector {
  return (labels) => {
    const listed = has(labels, key) && values.includes(labels[key]);
    if (operator === 'In') return listed;
    if (operator === 'NotIn') return !listed;
    return operator === 'Exists' ? has(labels, key) : operator === 'DoesNotExist' && !has(labels, key);
  };
}

function has(labels: Labels, key: string): boolean {
  return Object.hasOwn(labels, key);
}
