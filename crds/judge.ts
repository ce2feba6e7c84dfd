// What is wrong with an object, as far as it can prove that by itself?
// The same as what the CRD's schema and CEL say (a test proves that they agree), in words that name the field and what to do.
import type * as z from 'zod';
import type { Kind } from './kinds.ts';
import type { Mistake } from './mistake.ts';
import { type Plan, planOf } from './plan.ts';
import { changes, type Rule } from './rule.ts';
import { toMistake, toPath } from './schema-words.ts';
import { isMap } from './shapes.ts';

/** As much of an object as is judged; with `generateName` there is no name yet. */
export interface Judged {
  readonly metadata?: { readonly name?: string | undefined } | undefined;
  readonly spec?: unknown;
}

/**
 * Every mistake of `object`, in the order of its fields; empty when it is good. `old` is the stored object on update,
 * which rules about change compare with. Total: any JSON may be passed. A good object is parsed once.
 */
export function judge(kind: Kind, object: Judged, old?: Judged): readonly Mistake[] {
  return read(kind, object, old).mistakes;
}

/** The same, with the spec as the schema reads it, defaults included; undefined where the schema refuses it. */
export function read(kind: Kind, object: Judged, old?: Judged) {
  const huge = hugeIn(object.spec, 'spec');
  if (huge !== undefined) return { spec: undefined, mistakes: [huge] };
  const spec = withoutNulls(object.spec);
  const { data, error } = kind.spec.safeParse(spec);
  const mistakes = judgeName(kind, object);
  for (const issue of error?.issues ?? []) mistakes.push(toMistake(issue, spec));
  const plan = planOf(kind);
  if (plan !== undefined) judgeNode(plan, { value: spec, data, old: withoutNulls(old?.spec), path: 'spec' }, mistakes);
  return { spec: data, mistakes };
}

/** More entries than any list or map of ours takes. */
const MAX_ENTRIES = 1024;

/** The first list or map of so many entries that judging each would take more memory than there is. */
function hugeIn(value: unknown, path: string): Mistake | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const names = Array.isArray(value) ? [...value.slice(0, MAX_ENTRIES + 1).keys()] : Object.keys(value);
  if (names.length > MAX_ENTRIES) {
    const message = `has more than ${MAX_ENTRIES} entries; leave some out`;
    return { rule: 'TooLarge', path, value: undefined, message };
  }
  for (const name of names) {
    const huge = hugeIn(Reflect.get(value, name), toPath([name], path));
    if (huge !== undefined) return huge;
  }
  return undefined;
}

function judgeName(kind: Kind, object: Judged): Mistake[] {
  const name = object.metadata?.name;
  const rule = kind.nameRule;
  if (rule === undefined || name === undefined || rule.holds(name)) return [];
  return [{ rule: rule.id, path: 'metadata.name', value: name, message: rule.message }];
}

interface Place {
  readonly value: unknown;
  /** The value as the schema reads it, defaults included; undefined where something around it was refused. */
  readonly data: unknown;
  readonly old: unknown;
  readonly path: string;
}

/** Adds what breaks a rule of this node or of one below. */
function judgeNode(plan: Plan, place: Place, found: Mistake[]): void {
  if (place.value === undefined) return;
  const data = plan.rules.length > 0 ? judgeRules(plan, place, found) : place.data;
  if (plan.keys !== undefined && Array.isArray(place.value)) judgeList(place.value, place.path, plan, found);
  judgeChildren(plan, place, data, found);
}

/** A rule is asked only about what the schema accepts: one mistake is told once. Answers the value as the schema reads it. */
function judgeRules({ schema, rules, compares }: Plan, { value, data, old, path }: Place, found: Mistake[]): unknown {
  const now = data ?? schema.safeParse(value).data;
  const before = compares ? schema.safeParse(old).data : undefined;
  for (const rule of rules) {
    const self = now ?? readFor(rule, schema, value);
    if (self === undefined || (compares && before === undefined && changes(rule)) || rule.holds(self, before)) continue;
    const { id, at, message } = rule;
    const where = at === undefined ? path : `${path}.${at}`;
    found.push({ rule: id, path: where, value: at === undefined ? value : member(value, at), message });
  }
  return now;
}

/** The members that a rule looks at; undefined where one of them is malformed, which the schema says. */
function readFor({ reads }: Rule<unknown>, schema: z.ZodType, value: unknown): unknown {
  if (reads === undefined || !isMap(value)) return undefined;
  const { shape } = schema as z.ZodObject;
  const read = reads.map((name) => [name, shape[name]?.safeParse(member(value, name))] as const);
  if (read.some(([, parsed]) => parsed?.success !== true)) return undefined;
  return Object.fromEntries(read.map(([name, parsed]) => [name, parsed?.data]));
}

function judgeList(list: readonly unknown[], path: string, { keys = [], repeated }: Plan, found: Mistake[]): void {
  const [name] = keys;
  const seen = new Map<string, number>();
  for (const [index, entry] of list.entries()) {
    const key = keyOf(entry, keys);
    const first = seen.get(key);
    if (first === undefined) {
      seen.set(key, index);
      continue;
    }
    const what = name === undefined ? entry : member(entry, name);
    const where = name === undefined ? `${path}[${index}]` : `${path}[${index}].${name}`;
    const message = `stands in the list already, at ${path}[${first}]; ${repeated}`;
    found.push({ rule: 'Duplicate', path: where, value: what, message });
  }
}

/** The same text for the same entry, whatever stands there. */
function keyOf(entry: unknown, keys: readonly string[]): string {
  if (keys.length === 0) return typeof entry === 'string' ? `"${entry}` : JSON.stringify(entry);
  return JSON.stringify(keys.map((name) => member(entry, name)));
}

function judgeChildren({ items, values, members }: Plan, place: Place, data: unknown, found: Mistake[]): void {
  const { value, old, path } = place;
  if (Array.isArray(value)) {
    if (items === undefined) return;
    const read: readonly unknown[] = Array.isArray(data) ? data : [];
    for (const [index, entry] of value.entries())
      judgeNode(items, { value: entry, data: read[index], old: undefined, path: `${path}[${index}]` }, found);
    return;
  }
  if (!isMap(value)) return;
  const judgeMember = (plan: Plan, name: string, path: string) =>
    judgeNode(plan, { value: member(value, name), data: member(data, name), old: member(old, name), path }, found);
  if (values !== undefined)
    for (const name of Object.keys(value)) judgeMember(values, name, `${path}[${JSON.stringify(name)}]`);
  for (const [name, child] of members) if (Object.hasOwn(value, name)) judgeMember(child, name, `${path}.${name}`);
}

/** The API server drops nulls before it judges: a member that is null is absent. */
function withoutNulls(value: unknown): unknown {
  return hasNull(value) ? copyWithoutNulls(value) : value;
}

function hasNull(value: unknown): boolean {
  if (typeof value !== 'object') return false;
  if (value === null) return true;
  if (Array.isArray(value)) return value.some(hasNull);
  for (const name in value) if (hasNull((value as Readonly<Record<string, unknown>>)[name])) return true;
  return false;
}

function copyWithoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyWithoutNulls);
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== null)
      .map(([name, child]) => [name, copyWithoutNulls(child)]),
  );
}

const member = (value: unknown, name: string): unknown =>
  isMap(value) && Object.hasOwn(value, name) ? value[name] : undefined;
