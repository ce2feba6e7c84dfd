// How is an environment variable written down: what its text means, what holds where it is absent, what it is about?
// By hand: an environment is texts only, and the schema library would be most of a cold start.

export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

/** What the text of a variable means, or what is wrong with it: continues its name, `is not a port`. */
export type Reader<T> = (text: string) => Read<T>;

export interface Variable<T> {
  /** What is bound need be no text on Workers. */
  readonly read: (given: unknown) => Read<T>;
  /** Where it is not set, or empty. */
  readonly absent: Read<T>;
  readonly about: string;
}

/** A rule about several variables, judged whatever else is wrong: one start shows everything. */
export interface Agreement {
  readonly holds: (given: Given) => boolean;
  /** The variable that has to change, and how. */
  readonly at: string;
  readonly problem: string;
}

export interface Environment<V extends Variables> {
  readonly variables: V;
  readonly agreements?: ReadonlyArray<Agreement>;
}

export type Variables = Readonly<Record<string, Variable<unknown>>>;
/** What is set, and not empty. */
type Given = Readonly<Record<string, unknown>>;

export type ValuesOf<E> =
  E extends Environment<infer V>
    ? { readonly [name in keyof V]: V[name] extends Variable<infer T> ? T : never }
    : never;

const ok = <T>(value: T): Read<T> => ({ ok: true, value });
const wrong = (problem: string): Read<never> => ({ ok: false, problem });

export const text: Reader<string> = ok;

export const matching =
  (pattern: RegExp, problem: string): Reader<string> =>
  (text) =>
    pattern.test(text) ? ok(text) : wrong(problem);

export const oneOf =
  <T extends string>(...choices: readonly T[]): Reader<T> =>
  (text) => {
    const choice = choices.find((one) => one === text);
    return choice === undefined ? wrong(`is none of ${choices.join(', ')}`) : ok(choice);
  };

/** What `convert` makes of it; undefined where that is nothing. */
export const converted =
  <T>(convert: (text: string) => T | undefined, problem: string): Reader<T> =>
  (text) => {
    const value = convert(text);
    return value === undefined ? wrong(problem) : ok(value);
  };

const ofText =
  <T>(read: Reader<T>) =>
  (given: unknown): Read<T> =>
    typeof given === 'string' ? read(given) : wrong('is not a text');

export const required = <T>(read: Reader<T>, about = ''): Variable<T> => ({
  read: ofText(read),
  absent: wrong('it has no default'),
  about,
});

export const optional = <T>(read: Reader<T>, about = ''): Variable<T | undefined> => ({
  read: ofText(read),
  absent: ok(undefined),
  about,
});

/** `usual` is written as people would. */
export const withDefault = <T>(read: Reader<T>, usual: string, about = ''): Variable<T> => ({
  read: ofText(read),
  absent: read(usual),
  about,
});

/** Something that the platform binds, which is no text. */
export const bound = <T>(is: (given: unknown) => given is T, problem: string, about = ''): Variable<T> => ({
  read: (given) => (is(given) ? ok(given) : wrong(problem)),
  absent: wrong('bind it'),
  about,
});

export type ReadAll<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: ReadonlyArray<readonly [name: string, problem: string]> };

/** Every value, or the name of each variable that is wrong with why, in their order. */
export function readVariables<V extends Variables>(
  { variables, agreements = [] }: Environment<V>,
  given: Given,
): ReadAll<ValuesOf<Environment<V>>> {
  const problems: Array<readonly [string, string]> = [];
  const values = Object.entries(variables).map(([name, variable]) => {
    const read = readOne(variable, given[name]);
    if (!read.ok) problems.push([name, read.problem]);
    return [name, read.ok ? read.value : undefined];
  });
  for (const { holds, at, problem } of agreements) if (!holds(given)) problems.push([at, problem]);
  if (problems.length > 0) return { ok: false, problems };
  // Each was read by the variable of its name.
  return { ok: true, value: Object.fromEntries(values) as ValuesOf<Environment<V>> };
}

function readOne({ read, absent }: Variable<unknown>, given: unknown): Read<unknown> {
  return given === undefined ? absent : read(given);
}
