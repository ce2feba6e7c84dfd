// Validation of one of our objects without looking at others: the same verdict as the CRD's schema and CEL, with better
// messages.
import type * as z from 'zod';
import type { KindName, Schemas } from '../kinds/kinds.ts';
import { findAnnotationViolations } from '../names/annotations.ts';
import { isMap } from './json-shapes.ts';
import { type IssueParams, UNCHANGED, validationsOf } from './rule.ts';
import type { Violation, ViolationType } from './violation.ts';

/** A kind with its schemas, as far as validation needs it. */
type Validatable<S = unknown> = { readonly kind: KindName } & Pick<Schemas<S>, 'spec' | 'nameRule'>;

/** As much of an object as is validated; with `generateName` there is no name yet. */
export interface ValidationInput {
  readonly metadata?: {
    readonly name?: string | undefined;
    readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  };
  readonly spec?: unknown;
}

export interface ValidationResult<S> {
  /** Violations in the order of the fields. */
  readonly violations: ReadonlyArray<Violation>;
  /** The spec with its defaults. A spec that only breaks rules can be read; undefined where its form is wrong. */
  readonly spec: S | undefined;
}

/** `old` is the stored object on update: some fields never change. Throws for no input, whatever JSON it is. */
export function validate<S>(
  kind: Validatable<S>,
  { metadata, spec: given }: ValidationInput,
  old?: ValidationInput,
): ValidationResult<S> {
  const around = [...ofName(kind, metadata?.name), ...findAnnotationViolations(kind.kind, metadata?.annotations ?? {})];
  const huge = findHuge(given);
  if (huge !== undefined) return { violations: [tooLarge(huge), ...around], spec: undefined };
  const spec = withoutNulls(given);
  const { success, data, error } = kind.spec.safeParse(spec);
  const changed = old === undefined ? [] : ofChanges(kind, spec, old.spec);
  if (success) return { violations: [...changed, ...around], spec: data };
  const issues = withoutSizesOfWrongTypes(error.issues);
  const violations = [...issues.map((issue) => toViolation(issue, spec, kind)), ...changed, ...around];
  const isReadable = error.issues.every((issue) => brokenIn(issue).rule !== undefined);
  return { violations, spec: isReadable ? readAnyway(kind, spec) : undefined };
}

/** zod does not return the output where a rule is broken; its core entry point does. */
const readAnyway = <S>({ spec: schema }: Validatable<S>, spec: unknown): S =>
  (schema._zod.run({ value: spec, issues: [] }, { async: false }) as z.core.ParsePayload<S>).value;

function ofName({ nameRule }: Validatable, name: string | undefined): Violation[] {
  if (nameRule === undefined || name === undefined || nameRule.isMet(name)) return [];
  return [{ rule: nameRule.id, type: 'Invalid value', path: 'metadata.name', value: name, message: nameRule.message }];
}

/** Members that never change, compared as the schema reads them. */
function ofChanges({ spec: { shape } }: Validatable, spec: unknown, old: unknown): Violation[] {
  return Object.entries(shape).flatMap(([name, schema]): Violation[] => {
    const rule = validationsOf(schema).find((validation) => validation.rule === UNCHANGED);
    if (rule === undefined) return [];
    const [now, before] = [spec, withoutNulls(old)].map((one) => schema.safeParse(isMap(one) ? one[name] : undefined));
    if (!now?.success || !before?.success || JSON.stringify(now.data) === JSON.stringify(before.data)) return [];
    const { id, message } = rule;
    return [{ rule: id, type: 'Invalid value', path: `spec.${name}`, value: now.data, message }];
  });
}

/** More entries than any list or of our maps allows, and a greater depth than any of our fields has. */
const MAX_ENTRIES = 1024;
const MAX_DEPTH = 32;

interface Huge {
  readonly path: ReadonlyArray<PropertyKey>;
  readonly message: string;
}

/** The first list or map that is too large or too deep to be validated with the memory and stack that there are. */
function findHuge(value: unknown, depth = 0): Huge | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > MAX_DEPTH) return { path: [], message: `may not be nested deeper than ${MAX_DEPTH} levels` };
  const names = Array.isArray(value) ? [...value.slice(0, MAX_ENTRIES + 1).keys()] : Object.keys(value);
  if (names.length > MAX_ENTRIES)
    return { path: [], message: `must have at most ${MAX_ENTRIES} entries; leave some out` };
  for (const name of names) {
    const huge = findHuge(Reflect.get(value, name), depth + 1);
    if (huge !== undefined) return { ...huge, path: [name, ...huge.path] };
  }
  return undefined;
}

const tooLarge = ({ path, message }: Huge): Violation => ({
  rule: 'TooLarge',
  type: 'Too many',
  path: toPath(path),
  value: undefined,
  message,
});

/**
 * The API server drops nulls before it validates: a member that is null is absent. Nearly all specs have none, and are
 * not copied.
 */
const withoutNulls = (value: unknown): unknown => (hasNullMember(value) ? copyWithoutNulls(value) : value);

function copyWithoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyWithoutNulls);
  if (!isMap(value)) return value;
  const members = Object.entries(value).filter(([, child]) => child !== null);
  return Object.fromEntries(members.map(([name, child]) => [name, copyWithoutNulls(child)]));
}

function hasNullMember(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasNullMember);
  for (const child of Object.values(value)) if (child === null || hasNullMember(child)) return true;
  return false;
}

/** A text in place of a list also has a length, which says nothing. */
function withoutSizesOfWrongTypes(issues: ReadonlyArray<z.core.$ZodIssue>): ReadonlyArray<z.core.$ZodIssue> {
  const wrong = new Set(issues.flatMap(({ code, path }) => (code === 'invalid_type' ? toPath(path) : [])));
  return issues.filter(({ code, path }) => !(code === 'too_big' || code === 'too_small') || !wrong.has(toPath(path)));
}

const brokenIn = (issue: z.core.$ZodIssue): IssueParams => (issue.code === 'custom' ? (issue.params ?? {}) : {});

/** A zod issue about a spec. Rules and patterns carry their own message; the others get one here. */
function toViolation(issue: z.core.$ZodIssue, spec: unknown, kind: Validatable): Violation {
  const value = valueAt(spec, issue.path);
  const { rule, type = 'Invalid value', message } = { ...describe(issue, value, kind), ...brokenIn(issue) };
  return { rule, type: value === undefined ? 'Required value' : type, path: toPath(issue.path), value, message };
}

function describe(
  issue: z.core.$ZodIssue,
  value: unknown,
  kind: Validatable,
): Pick<Violation, 'rule' | 'type' | 'message'> {
  switch (issue.code) {
    case 'invalid_type':
      if (value === undefined) return { rule: 'Required', message: `add this field${exampleOf(kind, issue.path)}` };
      return { rule: 'WrongType', message: typeMessage(issue, value) };
    case 'invalid_value': {
      const words = issue.values.map((word) => JSON.stringify(word)).join(', ');
      if (value === undefined) return { rule: 'Required', message: `add this field; it must be one of ${words}` };
      return { rule: 'NotInEnum', type: 'Unsupported value', message: `must be one of ${words}` };
    }
    case 'too_small':
      return { rule: 'TooSmall', message: `must be at least ${issue.minimum}` };
    case 'too_big': {
      const [type, unit] = TOO_BIG[issue.origin] ?? ['Invalid value', ''];
      return { rule: 'TooLarge', type, message: `must be at most ${issue.maximum}${unit}` };
    }
    default:
      return { rule: issue.code === 'custom' ? 'TooLarge' : 'Malformed', message: issue.message };
  }
}

/** The example in the description of a field of the spec. */
function exampleOf({ spec: { shape } }: Validatable, [name = '', ...below]: ReadonlyArray<PropertyKey>): string {
  const description = below.length === 0 ? shape[String(name)]?.description : undefined;
  const [, example] = /e\.g\. `([^`]+)`/.exec(description ?? '') ?? [];
  return example === undefined ? '' : `, e.g. \`${String(name)}: ${example}\``;
}

const TOO_BIG: Readonly<Record<string, readonly [ViolationType, string]>> = {
  string: ['Too long', ' characters; shorten it'],
  array: ['Too many', ' entries; leave some out'],
};

const TYPES: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a number',
  array: 'a list',
  record: 'a map',
  object: 'a map',
  string: 'a string',
  boolean: 'true or false',
};

/** YAML reads an unquoted `12` as a number and `yes` may be a boolean: the most frequent cause of a wrong type. */
function typeMessage({ expected, path }: z.core.$ZodIssueInvalidType, value: unknown): string {
  const must = `must be ${TYPES[expected] ?? expected}`;
  if (expected === 'string' && typeof value === 'number' && DURATION.test(String(path.at(-1))))
    return `${must} with a unit; write "${value}s", "${value}m", "${value}h" or "${value}d"`;
  if (expected === 'string') return typeof value === 'object' ? must : `${must}; put it in quotes, "${String(value)}"`;
  if (expected === 'array') return `${must}; write its entries below it, a line for each, with \`- \` before them`;
  if (expected === 'object' || expected === 'record')
    return `${must}; write its fields below it, indented, as \`name: value\``;
  // Quotes are to blame for a number or a boolean that came as text, and for nothing else.
  const isQuoted =
    typeof value === 'string' && (expected === 'boolean' || (value.trim() !== '' && !Number.isNaN(Number(value))));
  return isQuoted ? `${must}; write it without quotes` : must;
}

/** Fields in which a number alone, in quotes or not, has no meaning. */
const DURATION = /^(\w*[dD]uration|every|overlap|timeout|connect|firstByte|idle|total|within)$/;

const toPath = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`;
    return /^[A-Za-z][A-Za-z0-9]*$/.test(String(step))
      ? `${before}.${String(step)}`
      : `${before}[${JSON.stringify(String(step))}]`;
  }, 'spec');

const valueAt = (spec: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined,
    spec,
  );
