// What is set, as it is written down? Or one error that says everything that is wrong, at start.
import { type Environment, readVariables, type ValuesOf, type Variables } from './variable.ts';

/** Their values are never printed. */
const SECRET: ReadonlySet<string> = new Set([
  'PATH_SECRETS',
  'RECONCILE_TOKEN',
  'API_TOKEN',
  'UPSTASH_REDIS_REST_TOKEN',
  'CREDENTIALS',
  'HYPERDRIVE',
]);

/** The environment as it is written down, or one error that lists everything that is wrong with it. Empty means absent. */
export function readEnvironment<V extends Variables>(
  described: Environment<V>,
  environment: Readonly<Record<string, unknown>>,
): ValuesOf<Environment<V>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const read = readVariables(described, given);
  if (read.ok) return read.value;
  throw new Error(listProblems(read.problems.map(([name, problem]) => toLine(name, problem, given[name]))));
}

/** What is wrong, a line each. */
export function listProblems(lines: ReadonlyArray<string>): string {
  return `the environment is not right:\n${[...new Set(lines)].map((line) => `  ${line}`).join('\n')}`;
}

function toLine(name: string, problem: string, value: unknown): string {
  if (value === undefined) return `${name} is not set: ${problem}`;
  return SECRET.has(name) ? `${name} ${problem}` : `${name}=${JSON.stringify(value)}: ${problem}`;
}
