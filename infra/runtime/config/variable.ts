// Variables of an environment: the meaning of each text, and the value where it is absent.
// Written by hand: an environment holds texts only, and the schema library would be most of a cold start.
import { reasonOf } from '#core/failure/error-text.ts';

/** The value that a variable's text means. Throws an error whose message continues the name: `is not a port`. */
export type Reader<T> = (text: string) => T;

/**
 * The value of a variable. `given` is undefined where the variable is not set, and need not be a text on Workers (a
 * binding).
 */
type Variable<T> = (given: unknown) => T;

/** A rule about several variables, checked whatever else is wrong: one start shows everything. */
export interface Agreement {
  readonly isMet: (given: SetVariables) => boolean;
  /** The variable that has to change, and how. */
  readonly at: string;
  readonly problem: string;
}

interface Environment<V extends Variables> {
  readonly variables: V;
  readonly agreements?: ReadonlyArray<Agreement>;
}

type Variables = Readonly<Record<string, Variable<unknown>>>;
/** Variables that are set, and not empty. */
type SetVariables = Readonly<Record<string, unknown>>;

export type ValuesOf<E> =
  E extends Environment<infer V>
    ? { readonly [name in keyof V]: V[name] extends Variable<infer T> ? T : never }
    : never;

export function refuse(problem: string): never {
  throw new Error(problem);
}

export const text: Reader<string> = (given) => given;

export const oneOf =
  <T extends string>(...choices: readonly T[]): Reader<T> =>
  (given) =>
    choices.find((one) => one === given) ?? refuse(`is none of ${choices.join(', ')}`);

/** A reader by `convert`; where that is undefined, the text is refused with `problem`. */
export const converted =
  <T>(convert: (given: string) => T | undefined, problem: string): Reader<T> =>
  (given) =>
    convert(given) ?? refuse(problem);

export const matching = (pattern: RegExp, problem: string): Reader<string> =>
  converted((given) => (pattern.test(given) ? given : undefined), problem);

const variable =
  <T>(read: Reader<T>, absent: () => T): Variable<T> =>
  (given) => {
    if (given === undefined) return absent();
    return typeof given === 'string' ? read(given) : refuse('is not a text');
  };

export const required = <T>(read: Reader<T>): Variable<T> => variable(read, () => refuse('it has no default'));

export const optional = <T>(read: Reader<T>): Variable<T | undefined> => variable<T | undefined>(read, () => undefined);

/** `usual` is a text, as a person would write it. */
export const withDefault = <T>(read: Reader<T>, usual: string): Variable<T> => variable(read, () => read(usual));

/** A binding of the platform, which is not a text. */
export const bound =
  <T>(is: (given: unknown) => given is T, problem: string): Variable<T> =>
  (given) =>
    is(given) ? given : refuse(given === undefined ? 'bind it' : problem);

/** The same of a binding that may be absent. */
export const boundIfThere =
  <T>(is: (given: unknown) => given is T, problem: string): Variable<T | undefined> =>
  (given) =>
    given === undefined || is(given) ? given : refuse(problem);

/** Variables whose values are never printed. */
export const SECRET: ReadonlySet<string> = new Set([
  'PATH_SECRETS',
  'RECONCILE_TOKEN',
  'API_TOKEN',
  'UPSTASH_REDIS_REST_TOKEN',
  'CREDENTIALS',
  'HYPERDRIVE',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
]);

/**
 * Values of an environment, or one error that lists every problem. Empty means absent. `more`: problems of what the
 * values name.
 */
export function readEnvironment<V extends Variables>(
  { variables, agreements = [] }: Environment<V>,
  environment: Readonly<Record<string, unknown>>,
  more: (values: Partial<ValuesOf<Environment<V>>>) => ReadonlyArray<string> = () => [],
): ValuesOf<Environment<V>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const problems: string[] = [];
  const values = Object.entries(variables).map(([name, read]) => {
    try {
      return [name, read(given[name])];
    } catch (error) {
      problems.push(toLine(name, reasonOf(error), given[name]));
      return [name, undefined];
    }
  });
  for (const { isMet, at, problem } of agreements) if (!isMet(given)) problems.push(toLine(at, problem, given[at]));
  // Each value was read by the variable of its name.
  const read = Object.fromEntries(values) as ValuesOf<Environment<V>>;
  problems.push(...more(read));
  if (problems.length > 0) throw new Error(listProblems(problems));
  return read;
}

/** The message that lists problems, a line each. */
function listProblems(lines: ReadonlyArray<string>): string {
  return `the environment is not right:\n${[...new Set(lines)].map((line) => `  ${line}`).join('\n')}`;
}

function toLine(name: string, problem: string, value: unknown): string {
  if (value === undefined) return `${name} is not set: ${problem}`;
  return SECRET.has(name) ? `${name} ${problem}` : `${name}=${JSON.stringify(value)}: ${problem}`;
}
