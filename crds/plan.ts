// Which parts of a schema have rules that the schema itself cannot say? Walked once for each kind, not for each object.
import type * as z from 'zod';
import type { Kind } from './kinds.ts';
import { listKeys, listType } from './list-type.ts';
import { changes, type Rule } from './rule.ts';
import { rulesOf } from './ruled.ts';

/** One node of a schema with something to judge at it or below it; branches without are left out. */
export interface Plan {
  readonly schema: z.ZodType;
  readonly rules: readonly Rule<unknown>[];
  /** Whether any of the rules compares with what was there before. */
  readonly compares: boolean;
  /** Of a list whose entries stand once: the members that tell them apart, none where the entry itself does. */
  readonly keys: readonly string[] | undefined;
  /** What to do about an entry that stands there twice. */
  readonly repeated: string;
  readonly items: Plan | undefined;
  readonly values: Plan | undefined;
  /** In the order of the schema. */
  readonly members: ReadonlyArray<readonly [name: string, child: Plan]>;
}

/** Kinds are constants, and so is what is made of them; a kind that is gone takes its plan along. */
const plans = new WeakMap<Kind, Plan | undefined>();

/** Undefined where the schema says all. */
export function planOf(kind: Kind): Plan | undefined {
  if (!plans.has(kind)) plans.set(kind, toPlan(kind.spec));
  return plans.get(kind);
}

function toPlan(wrapped: z.core.$ZodType): Plan | undefined {
  const schema = unwrap(wrapped);
  const { def } = schema as z.ZodObject | z.ZodArray | z.ZodRecord;
  const rules = rulesOf(schema);
  const keys = listKeys(schema);
  const [key] = keys ?? [];
  const repeated = listType(schema) === 'map' ? `give each entry another ${key}` : 'remove one of the two';
  const items = def.type === 'array' ? toPlan(def.element) : undefined;
  const values = def.type === 'record' ? toPlan(def.valueType) : undefined;
  const members = def.type === 'object' ? Object.entries(def.shape).flatMap(([name, child]) => at(name, child)) : [];
  if (rules.length + members.length === 0 && keys === undefined && items === undefined && values === undefined)
    return undefined;
  return { schema, rules, compares: rules.some(changes), keys, repeated, items, values, members };
}

function at(name: string, child: z.core.$ZodType): ReadonlyArray<readonly [string, Plan]> {
  const plan = toPlan(child);
  return plan === undefined ? [] : [[name, plan]];
}

/** The schema itself, without what makes it optional or gives it a default. */
function unwrap(schema: z.core.$ZodType): z.ZodType {
  const { def } = schema as z.ZodOptional | z.ZodDefault | z.ZodPrefault;
  return def.type === 'optional' || def.type === 'default' || def.type === 'prefault'
    ? unwrap(def.innerType)
    : (schema as z.ZodType);
}
