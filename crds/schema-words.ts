// How is what the schema refuses said to a person?
import type * as z from 'zod';
import type { Finding } from './judge.ts';

/** A zod issue about a spec as a finding. Patterns carry their own words; the rest is worded here. */
export function toFinding(issue: z.core.$ZodIssue, spec: unknown): Finding {
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
  if (value === undefined) return 'is required: add it';
  if (issue.code === 'invalid_type')
    return `is ${nameOfType(value)}, not ${article(issue.expected)}${hint(issue.expected, value)}`;
  if (issue.code === 'invalid_value') return `is none of ${issue.values.map((one) => JSON.stringify(one)).join(', ')}`;
  if (issue.code === 'too_small') return `is below ${issue.minimum}`;
  if (issue.code === 'too_big') return tooBig(issue);
  return issue.message;
}

function tooBig(issue: z.core.$ZodIssueTooBig): string {
  if (issue.origin === 'string') return `is longer than ${issue.maximum} characters`;
  if (issue.origin === 'array') return `has more than ${issue.maximum} entries`;
  return `is above ${issue.maximum}`;
}

const article = (type: string) =>
  type === 'int'
    ? 'an integer'
    : /^[aeio]/.test(type)
      ? `an ${type}`
      : type === 'record'
        ? 'a map'
        : type === 'array'
          ? 'a list'
          : `a ${type}`;

/** YAML reads an unquoted `12` as a number and `yes` may be a boolean: the most frequent cause of a wrong type. */
function hint(expected: string, value: unknown): string {
  if (expected === 'string' && typeof value !== 'object') return `: put it in quotes, "${String(value)}"`;
  if (expected === 'boolean' && typeof value === 'string') return ': write true or false, without quotes';
  return '';
}

function nameOfType(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value === null) return 'null';
  return article(typeof value);
}

function toPath(path: ReadonlyArray<PropertyKey>): string {
  return path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`;
    return /^[A-Za-z][A-Za-z0-9]*$/.test(String(step))
      ? `${before}.${String(step)}`
      : `${before}[${JSON.stringify(String(step))}]`;
  }, 'spec');
}

function valueAt(spec: unknown, path: ReadonlyArray<PropertyKey>): unknown {
  return path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined,
    spec,
  );
}
