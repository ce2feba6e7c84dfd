// CEL expressions of validation rules and matchConditions: compiled once, evaluated on JSON.
import { type ASTNode, Environment, type Optional } from '@marcbachmann/cel-js';
import { goPattern } from './formats.ts';

/** Evaluates with the named variables. Throws `CelError` where the expression fails at run time (`no such key: x`). */
export type CelProgram = (variables: Readonly<Record<string, unknown>>) => unknown;

/** An expression that does not compile, or failed while it ran; the message is meant for people. */
export class CelError extends Error {}

/**
 * Compiles an expression of a rule or of a webhook's condition, over values that `toCel` or `toCelBy` made. Throws
 * `CelError` for bad syntax, and for functions and variables that are not there, naming them.
 */
export function compileCel(expression: string, place: keyof typeof environments): CelProgram {
  const program = attempt(() => environments[place].parse(expression), 'compile');
  useOurs(program.ast);
  const checked = program.check();
  if (!checked.valid) throw new CelError(firstLine(checked.error ?? new Error('does not compile')));
  return (values) => attempt(() => program(values), 'evaluate');
}

const environments = {
  rule: createEnvironment(['self', 'oldSelf']),
  condition: createEnvironment(['request', 'object', 'oldObject']),
};

function createEnvironment(variables: readonly string[]): Environment {
  const made = new Environment({
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: { maxListElements: 10_000, maxMapEntries: 10_000 },
  });
  for (const name of variables) made.registerVariable(name, 'dyn');
  made.registerFunction('string.matchesRE2(string): bool', (text: string, pattern: string) =>
    goPattern(pattern).test(text),
  );
  made.registerFunction('list.sum(): dyn', (list: readonly bigint[]) => list.reduce((sum, one) => sum + one, 0n));
  made.registerFunction('optional.dynValue(): dyn', (optional: Optional) => optional.value());
  return made;
}

/**
 * The library's `matches` reads patterns as JavaScript does, ours as RE2 does; the values of its `optional.value()`
 * cannot be compared (its overloads overlap for `optional<dyn>`), ours can. Kubernetes' own libraries (`quantity`,
 * `semver`, `ip`, `cidr`, `url`, `sets`, `format`, lists but for `sum`, `find`) are not here: a rule that uses one does
 * not compile, and the message names it.
 */
const replaced: ReadonlyMap<string, string> = new Map([
  ['matches', 'matchesRE2'],
  ['value', 'dynValue'],
]);

function useOurs(node: unknown): void {
  if (Array.isArray(node)) node.forEach(useOurs);
  if (typeof node !== 'object' || node === null || !('op' in node)) return;
  const { op, args } = node as ASTNode;
  if (op === 'rcall') args[0] = replaced.get(args[0]) ?? args[0];
  useOurs(args);
}

function attempt<T>(step: () => T, what: 'compile' | 'evaluate'): T {
  try {
    return step();
  } catch (cause) {
    const message = firstLine(cause);
    throw new CelError(what === 'compile' ? message : celGoMessage(message), { cause });
  }
}

/** Run-time failures as cel-go words them, where the library's words differ. */
function celGoMessage(message: string): string {
  const index = /^No such key: index out of bounds, index (-?\d+) >= size/.exec(message);
  if (index) return `index out of bounds: ${index[1]}`;
  const key = /^No such key: (.*)$/.exec(message);
  if (key) return `no such key: ${key[1]}`;
  const conversion = /^(\w+)\(\) type error: cannot convert to \w+$/.exec(message);
  if (conversion) return `type conversion error from 'string' to '${conversion[1]}'`;
  if (/^integer overflow/.test(message)) return 'integer overflow';
  if (/^(no such overload|found no matching overload)/.test(message)) return 'no such overload';
  return message;
}

/** The message of an error without the excerpt below it. */
export function firstLine(error: unknown): string {
  return (error as Error).message.split('\n')[0] ?? '';
}
