// How is what the schema refuses said to a person?
import type * as z from 'zod';
import type { Mistake } from './mistake.ts';

/** A zod issue about a spec as a mistake. Patterns carry their own words; the rest is worded here. */
export function toMistake(issue: z.core.$ZodIssue, spec: unknown): Mistake {
  const value = valueAt(spec, issue.path);
  return { rule: ruleOf(issue, value), path: toPath(issue.path), value, message: messageOf(issue, value) };
}

function ruleOf(issue: z.core.$ZodIssue, value: unknown): string {
  if (value === undefined) return 'Required';
  if (issue.code === 'invalid_type') return 'WrongType';
  if (issue.code === 'invalid_value') return 'NotInEnum';
  if (issue.code === 'invalid_format') return 'Malformed';
  if (issue.code === 'too_small') return 'TooSmall';
  return 'TooLarge';
}

function messageOf(issue: z.core.$ZodIssue, value: unknown): string {
  if (value === undefined) return 'is required; add it';
  if (issue.code === 'invalid_type')
    return `is ${nameOfType(value)}, not ${article(issue.expected)}; ${hint(issue.expected, value, String(issue.path.at(-1)))}`;
  if (issue.code === 'invalid_value') {
    const choices = issue.values.map((one) => JSON.stringify(one));
    return `is none of the choices; write ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
  }
  if (issue.code === 'too_small') return `is below ${issue.minimum}; write ${issue.minimum} or more`;
  if (issue.code === 'too_big') return tooBig(issue);
  return issue.message;
}

function tooBig({ origin, maximum }: z.core.$ZodIssueTooBig): string {
  if (origin === 'string') return `is longer than ${maximum} characters; shorten it`;
  if (origin === 'array') return `has more than ${maximum} entries; leave some out`;
  return `is above ${maximum}; write ${maximum} or less`;
}

const ARTICLES: Readonly<Record<string, string>> = {
  int: 'an integer',
  array: 'a list',
  record: 'a map',
  object: 'a map',
};

const article = (type: string): string => ARTICLES[type] ?? `a ${type}`;

/** Fields that a number alone, in quotes or not, says nothing in. */
const DURATION = /^(\w*[dD]uration|every|overlap|timeout|connect|firstByte|idle|total|within)$/;

/** YAML reads an unquoted `12` as a number and `yes` may be a boolean: the most frequent cause of a wrong type. */
function hint(expected: string, value: unknown, field: string): string {
  const isPlain = typeof value !== 'object';
  if (expected === 'string' && typeof value === 'number' && DURATION.test(field))
    return `write it with its unit, as "${value}s", "${value}m", "${value}h" or "${value}d"`;
  if (expected === 'string') return isPlain ? `put it in quotes, "${String(value)}"` : 'write one text in its place';
  if (expected === 'boolean') return 'write true or false, without quotes';
  if (expected === 'array') return 'write its entries below it, a line for each, with `- ` before them';
  if (expected === 'object' || expected === 'record') return 'write its fields below it, indented, as `name: value`';
  return 'write a whole number, without quotes';
}

function nameOfType(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value === null) return 'null';
  return article(typeof value);
}

export function toPath(path: ReadonlyArray<PropertyKey>, start = 'spec'): string {
  return path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`;
    return /^[A-Za-z][A-Za-z0-9]*$/.test(String(step))
      ? `${before}.${String(step)}`
      : `${before}[${JSON.stringify(String(step))}]`;
  }, start);
}

function valueAt(spec: unknown, path: ReadonlyArray<PropertyKey>): unknown {
  return path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined,
    spec,
  );
}
