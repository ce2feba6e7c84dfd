// What is wrong with an object, as far as it can prove that by itself?
// The same as what the CRD's schema and CEL say (a test proves that they agree), in words that name the field and what to do.
import type * as z from 'zod';
import type { Kind } from './kinds.ts';
import { listKeys, listType } from './list-type.ts';
import { changes, rulesOf } from './rule.ts';
import { toFinding } from './schema-words.ts';

/** One mistake: `path` is where (`spec.models[0].identifier`), `message` what is wrong and what to do. */
export interface Finding {
  readonly rule: string;
  readonly path: string;
  /** What stands there; undefined where nothing does. */
  readonly value: unknown;
  readonly message: string;
}

/** As much of an object as is judged; with `generateName` there is no name yet. */
export interface Judged {
  readonly metadata?: { readonly name?: string | undefined } | undefined;
  readonly spec?: unknown;
}

/**
 * Every finding about `object`, in the order of its fields; empty when it is good. `old` is the stored object on update,
 * which rules about change compare with. Total: any JSON may be passed.
 */
export function judge(kind: Kind, object: Judged, old?: Judged): readonly Finding[] {
  const spec = withoutNulls(object.spec);
  return [
    ...judgeName(kind, object),
    ...judgeSchema(kind.spec, spec),
    ...judgeNode(kind.spec, spec, withoutNulls(old?.spec), 'spec'),
  ];
}

function judgeName(kind: Kind, object: Judged): Finding[] {
  const name = object.metadata?.name;
  const rule = kind.nameRule;
  if (rule === undefined || name === undefined || rule.holds(name)) return [];
  return [{ rule: rule.id, path: 'metadata.name', value: name, message: rule.message }];
}

function judgeSchema(schema: z.ZodType, spec: unknown): Finding[] {
  const { error } = schema.safeParse(spec);
  return (error?.issues ?? []).map((issue) => toFinding(issue, spec));
}

/** Rules of this node and of all below. A rule is asked only about what the schema accepts: one mistake, one finding. */
function judgeNode(schema: z.core.$ZodType, value: unknown, old: unknown, path: string): Finding[] {
  const node = unwrap(schema);
  if (value === undefined) return [];
  return [
    ...judgeRules(node, value, old, path),
    ...judgeList(node, value, path),
    ...judgeChildren(node, value, old, path),
  ];
}

function judgeRules(node: z.ZodType, value: unknown, old: unknown, path: string): Finding[] {
  const rules = rulesOf(node);
  const now = rules.length > 0 ? node.safeParse(value) : undefined;
  if (!now?.success) return [];
  const before = node.safeParse(old);
  return rules
    .filter((rule) => before.success || !changes(rule))
    .filter((rule) => !rule.holds(now.data, before.data))
    .map(({ id, at, message }) => ({
      rule: id,
      path: at === undefined ? path : `${path}.${at}`,
      value: at === undefined ? value : member(value, at),
      message,
    }));
}

function judgeList(node: z.ZodType, value: unknown, path: string): Finding[] {
  if (!Array.isArray(value)) return [];
  const keys = listKeys(node);
  if (keys === undefined) return [];
  const seen = new Map<string, number>();
  return value.flatMap((entry, index) => {
    const key = JSON.stringify(keys.length === 0 ? entry : keys.map((name) => member(entry, name)));
    const first = seen.get(key);
    if (first === undefined) {
      seen.set(key, index);
      return [];
    }
    const [name] = keys;
    const what = name === undefined ? entry : member(entry, name);
    const where = name === undefined ? `${path}[${index}]` : `${path}[${index}].${name}`;
    const message = `stands in the list already, at ${path}[${first}]: ${listType(node) === 'map' ? `give each entry another ${name}` : 'remove one of the two'}`;
    return [{ rule: 'Duplicate', path: where, value: what, message }];
  });
}

function judgeChildren(node: z.ZodType, value: unknown, old: unknown, path: string): Finding[] {
  const { def } = node as z.ZodObject | z.ZodArray | z.ZodRecord;
  if (def.type === 'array' && Array.isArray(value)) {
    return value.flatMap((entry, index) => judgeNode(def.element, entry, undefined, `${path}[${index}]`));
  }
  if (!isObject(value)) return [];
  if (def.type === 'record') {
    return Object.entries(value).flatMap(([name, entry]) =>
      judgeNode(def.valueType, entry, member(old, name), `${path}[${JSON.stringify(name)}]`),
    );
  }
  if (def.type !== 'object') return [];
  return Object.entries(def.shape).flatMap(([name, child]) =>
    judgeNode(child, member(value, name), member(old, name), `${path}.${name}`),
  );
}

/** The schema itself, without what makes it optional or gives it a default. */
export function unwrap(schema: z.core.$ZodType): z.ZodType {
  const { def } = schema as z.ZodOptional | z.ZodDefault | z.ZodPrefault;
  return def.type === 'optional' || def.type === 'default' || def.type === 'prefault'
    ? unwrap(def.innerType)
    : (schema as z.ZodType);
}

/** The API server drops nulls before it judges: a member that is null is absent. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== null)
      .map(([name, child]) => [name, withoutNulls(child)]),
  );
}

const member = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
