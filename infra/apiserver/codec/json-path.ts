// JSONPath of printer columns and selectable fields.
import { isObject } from '../schema/json.ts';

type Step = (values: readonly unknown[]) => unknown[];

/** A path that cannot be read; the message names it. */
export class JsonPathError extends Error {}

/**
 * Compiles the JSONPath of a printer column: `.a.b`, `['a.b']`, `[0]`, `[-1]`, `[*]`, `.*` and filters
 * `[?(@.type=="Ready")]`. The result has every value found, none where the path leads nowhere.
 */
export function jsonPath(path: string): (object: unknown) => unknown[] {
  const steps = parse(path);
  return (object) => steps.reduce<unknown[]>((values, step) => step(values), [object]);
}

const token =
  /^(?:\.?\*|\[\*\])|^\.?((?:[^.[\]\\*]|\\.)+)|^\[(-?\d+)\]|^\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]|^\[\?\(\s*@((?:\.[^.[\]=!<>\s)]+|\['[^']*'\])*)\s*(?:(==|!=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^)]*?))?\s*\)\]/;

function parse(path: string): Step[] {
  const steps: Step[] = [];
  for (let rest = path; rest !== ''; ) {
    const match = token.exec(rest);
    if (match === null || match[0] === '')
      throw new JsonPathError(`cannot read the JSONPath ${JSON.stringify(path)} at ${JSON.stringify(rest)}`);
    steps.push(toStep(match));
    rest = rest.slice(match[0].length);
  }
  return steps;
}

function toStep([whole, name, index, single, double, filter, operator, literal]: RegExpExecArray): Step {
  const key = name ?? single ?? double;
  if (key !== undefined) return members(key.replace(/\\(.)/g, '$1'));
  if (index !== undefined)
    return (values) => values.flatMap((value) => (Array.isArray(value) ? value.slice(Number(index)).slice(0, 1) : []));
  if (whole.startsWith('[?')) return matching(jsonPath(filter ?? ''), operator, literal);
  return (values) =>
    values.flatMap((value) => (Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []));
}

function members(key: string): Step {
  return (values) => values.flatMap((value) => (isObject(value) && Object.hasOwn(value, key) ? [value[key]] : []));
}

function matching(find: (value: unknown) => unknown[], operator: string | undefined, literal = ''): Step {
  const wanted = /^["']/.test(literal) ? literal.slice(1, -1).replace(/\\(.)/g, '$1') : literal;
  return (values) =>
    values
      .flatMap((value) => (Array.isArray(value) ? value : []))
      .filter((item) => {
        const found = find(item);
        if (operator === undefined) return found.length > 0;
        return found.length > 0 && (operator === '==') === (String(found[0]) === wanted);
      });
}
