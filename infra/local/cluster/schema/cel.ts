// What does a CEL expression of a validation rule or a matchCondition evaluate to?
import { Environment } from '@marcbachmann/cel-js';

/** Evaluates with the named variables. Throws `CelError` where the expression fails at run time (`no such key: x`). */
export type CelProgram = (variables: Readonly<Record<string, unknown>>) => unknown;

/** An expression that does not compile, or failed while it ran; the message is meant for people. */
export class CelError extends Error {}

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
});

/** Compiles; throws `CelError` for bad syntax and for functions that are not there, naming them. */
export function compileCel(expression: string): CelProgram {
  const program = environment.parse(expression);
  const checked = program.check();
  if (!checked.valid) throw new CelError(checked.error?.message ?? 'does not compile');
  return (variables) => program(toCel(variables) as Record<string, unknown>);
}

/** JSON to CEL: integers are `int` (bigint), other numbers `double`. */
export function toCel(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, toCel(child)]));
}
