// Which rules belong to which schema?
import * as z from 'zod';
import type { Rule } from './rule.ts';

interface Ruled {
  readonly rules: readonly Rule<unknown>[];
}

const registry = z.registry<Ruled>();

/** The same schema with rules attached. They are judged by `judgeSpec` and written into the CRD. */
export function ruled<S extends z.ZodType>(schema: S, rules: readonly Rule<z.output<S>>[]): S {
  const all = [...rulesOf(schema), ...rules] as readonly Rule<unknown>[];
  const copy = schema.clone();
  registry.add(copy, { rules: all });
  return copy;
}

/** The rules of exactly this schema, not of what lies below it. */
export function rulesOf(schema: z.core.$ZodType): readonly Rule<unknown>[] {
  return registry.get(schema as z.ZodType)?.rules ?? [];
}
