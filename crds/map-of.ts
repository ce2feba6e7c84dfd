// How is a map bounded, names and all?
import * as z from 'zod';
import { text } from './fragments.ts';
import type { Rule } from './rule.ts';
import { ruled } from './ruled.ts';
import { labelNames } from './rules.ts';

/** A map from text to `values`: so many entries, and names of a form that only a rule can say (a schema cannot). */
export function mapOf<V extends z.ZodType>(values: V, { min = 0, max = 64, names }: Bounds) {
  const map = z
    .record(z.string(), values)
    .refine((entries) => Object.keys(entries).length >= min, `has too few entries; add at least ${min}`)
    .refine((entries) => Object.keys(entries).length <= max, `has more than ${max} entries; leave some out`)
    .meta(min > 0 ? { minProperties: min, maxProperties: max } : { maxProperties: max });
  return ruled(map, [names]);
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
  readonly names: Rule<Readonly<Record<string, unknown>>>;
}

export const Labels = mapOf(
  z
    .string()
    .regex(
      /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/u,
      'is not a label value; write letters, digits, `-`, `_` and `.`',
    )
    .max(63),
  { names: labelNames },
);
export const Annotations = mapOf(text(4096), { names: labelNames });
