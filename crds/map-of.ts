// How is a map bounded, names and all?
import * as z from 'zod';
import { isWithin, text } from './fragments.ts';
import { ruled } from './rule.ts';

/** A map from text to `values`: so many entries, and names of a form that only a rule can say (a schema cannot). */
export function mapOf<V extends z.ZodType>(values: V, names: MapNames) {
  const { min = 0, max = 64, pattern, longest } = names;
  const map = z
    .record(z.string(), values)
    .refine((entries) => Object.keys(entries).length >= min, `has too few entries; add at least ${min}`)
    .refine((entries) => Object.keys(entries).length <= max, `has more than ${max} entries; leave some out`)
    .meta(min > 0 ? { minProperties: min, maxProperties: max } : { maxProperties: max });
  const form = pattern === undefined ? '' : ` && name.matches('${pattern.source}')`;
  return ruled(map, [
    {
      id: 'EntryName',
      cel: `self.all(name, size(name) >= 1 && size(name) <= ${longest}${form})`,
      message: `has an entry with a bad name; ${names.form}`,
      holds: (self) =>
        Object.keys(self).every(
          (name) => name.length >= 1 && isWithin(longest, name) && (pattern === undefined || pattern.test(name)),
        ),
    },
  ]);
}

interface MapNames {
  readonly min?: number;
  readonly max?: number;
  readonly pattern?: RegExp;
  readonly longest: number;
  /** What a good name looks like, for people. */
  readonly form: string;
}

const QUALIFIED_NAME = {
  pattern:
    /^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*[/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
  longest: 317,
  form: 'write it like "team" or "example.com/team"',
};

export const Labels = mapOf(
  z
    .string()
    .regex(
      /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/u,
      'is not a label value; write letters, digits, `-`, `_` and `.`',
    )
    .max(63),
  QUALIFIED_NAME,
);
export const Annotations = mapOf(text(4096), QUALIFIED_NAME);
