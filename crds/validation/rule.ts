// Rules about one object: written beside the field, in TypeScript for us and in CEL for the API server. A test proves
// that both agree.
import * as z from 'zod';
import { fitsIn } from './units.ts';

/** One rule about one value of a spec. */
export interface Rule<T> {
  /** Names the rule in findings, metrics and tests: one CamelCase word. */
  readonly id: string;
  /** CEL over `self`, and over `oldSelf` in a rule about change (which the API server runs on update only). */
  readonly cel: string;
  /** Whether the rule holds. Total: a member may still be malformed in its own way. */
  readonly isMet: (self: T) => boolean;
  /** The message: what must be true, then what to do. */
  readonly message: string;
  /** The member below `self` that a violation names, e.g. `overlap`. Absent: `self`. */
  readonly at?: string;
}

/** The parameters of a zod issue. An issue with a `rule` leaves the spec readable. */
export interface IssueParams {
  readonly rule?: string;
  readonly type?: 'Too long' | 'Too many' | 'Duplicate value';
  readonly validation?: Validation;
}

/** The same schema with the rules: `validate` checks them, and the CRD contains them. */
export const withRule = <S extends z.ZodType>(schema: S, ...rules: ReadonlyArray<Rule<z.output<S>>>): S =>
  rules.reduce<S>((before, { id, cel, at, message, isMet }) => {
    const validation = { rule: cel, message, ...(at && { fieldPath: `.${at}` }) };
    const params: IssueParams = { rule: id, validation };
    return before.refine(isMet, { error: message, path: at === undefined ? [] : [at], params });
  }, schema);

/** A member of a spec that never changes. `validate` compares it with the stored one. */
export const immutable = <S extends z.ZodType>(schema: S, { id, message }: Pick<Rule<unknown>, 'id' | 'message'>): S =>
  withRule(schema, { id, cel: UNCHANGED, message, isMet: () => true });

export const UNCHANGED = 'self == oldSelf';

/** A rule as the API server runs it. */
export interface Validation {
  readonly rule: string;
  readonly message: string;
  /** Relative to where the rule stands: `.overlap`. */
  readonly fieldPath?: string;
  /** The rule runs on create too, where `oldSelf` is empty. */
  readonly optionalOldSelf?: true;
}

/** The rules of exactly this schema, not of what lies below it. */
export function validationsOf(schema: z.core.$ZodType): ReadonlyArray<Validation & { readonly id: string }> {
  const checks = (schema._zod.def.checks ?? []) as ReadonlyArray<{ _zod: { def: { params?: IssueParams } } }>;
  return checks.flatMap(({ _zod: { def } }) =>
    def.params?.validation === undefined ? [] : [{ ...def.params.validation, id: def.params.rule ?? '' }],
  );
}

/**
 * A string of at most `max` characters as Kubernetes counts them: code points, where JavaScript counts UTF-16 units.
 */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => fitsIn(max, value), {
      error: `may not be more than ${max} characters; shorten it`,
      abort: true,
      params: { type: 'Too long' } satisfies IssueParams,
    })
    .meta({ maxLength: max });

/**
 * The same map or list, whose texts together have at most `max` characters: it is kept in memory with all others. A map
 * of objects has only its names.
 */
export const inAll = <S extends z.ZodType<Readonly<Record<string, unknown>> | ReadonlyArray<string>>>(
  max: number,
  texts: S,
): S => {
  const isOfObjects = texts instanceof z.ZodRecord && texts.valueType instanceof z.ZodObject;
  const all = (self: z.output<S>) =>
    (isArray(self) ? self : isOfObjects ? Object.keys(self) : Object.entries(self).flat()).join('');
  const sizesOfMap = isOfObjects ? 'name, size(name)' : 'name, size(name) + size(self[name])';
  const sizes = texts instanceof z.ZodArray ? 'text, size(text)' : sizesOfMap;
  const error = `may have at most ${max} characters in all${isOfObjects ? ' its names' : ''}`;
  const validation = { rule: `self.map(${sizes}).sum() <= ${max}`, message: `${error}; shorten or remove some` };
  return texts.refine((self) => fitsIn(max, all(self)), {
    error: ({ input }) => `${error} and has ${[...all(input as z.output<S>)].length}; shorten or remove some`,
    params: { type: 'Too long', validation } satisfies IssueParams,
  });
};

const isArray = (value: unknown): value is ReadonlyArray<string> => Array.isArray(value);

/** A map from text to `values` with `min` to `max` entries, and names of a form that a schema cannot express. */
export function mapOf<V extends z.ZodType>(values: V, names: Names, { min = 0, max = 64 } = {}) {
  const params = { type: 'Too many' } satisfies IssueParams;
  const map = z
    .record(z.string(), values)
    .refine((entries) => Object.keys(entries).length >= min, `must have at least ${min} entry`)
    .refine((entries) => Object.keys(entries).length <= max, { error: `must have at most ${max} entries`, params })
    .meta(min > 0 ? { minProperties: min, maxProperties: max } : { maxProperties: max });
  return withRule(map, namesLike(names));
}

interface Names {
  readonly pattern?: RegExp;
  readonly max: number;
  /** The form of a good name, for people. */
  readonly form: string;
}

const namesLike = ({ pattern, max, form }: Names): Rule<Readonly<Record<string, unknown>>> => ({
  id: 'EntryName',
  cel: `self.all(name, size(name) >= 1 && size(name) <= ${max}${pattern === undefined ? '' : ` && name.matches('${pattern.source}')`})`,
  message: `must have keys ${form}`,
  isMet: (self) =>
    Object.keys(self).every(
      (name) => name !== '' && fitsIn(max, name) && (pattern === undefined || pattern.test(name)),
    ),
});

/** A list whose entries are identified by one member; the API server refuses a repeated one, at no CEL cost. */
export const listBy = <V extends z.ZodType>(key: string, items: V, max: number) =>
  once(z.array(items).max(max), key).meta({
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [key],
  });

/** A list of texts in which each stands once. */
export const setOf = <V extends z.ZodType>(items: V, max: number) =>
  once(z.array(items).max(max)).meta({ 'x-kubernetes-list-type': 'set' });

/** A list that is written as a whole and may repeat. */
export const listOf = <V extends z.ZodType>(items: V, max: number) =>
  z.array(items).max(max).meta({ 'x-kubernetes-list-type': 'atomic' });

const once = <S extends z.ZodArray>(list: S, key?: string): S =>
  list.superRefine((entries, { addIssue }) => {
    const values = key === undefined ? entries : entries.map((entry) => Reflect.get(entry as object, key));
    const firsts = new Map<unknown, number>();
    for (const [index, value] of values.entries()) {
      const first = firsts.get(value);
      if (first === undefined) {
        firsts.set(value, index);
        continue;
      }
      const element = `element ${first} of the list`;
      addIssue({
        code: 'custom',
        path: key === undefined ? [index] : [index, key],
        message:
          key === undefined
            ? `is already ${element}; remove one of the two`
            : `is already the ${key} of ${element}; choose another ${key}`,
        params: { rule: 'Duplicate', type: 'Duplicate value' } satisfies IssueParams,
      });
    }
  });
