// `x-kubernetes-validations`: the CEL rules of a schema's parts.
import { Optional } from '@marcbachmann/cel-js';
import { type CelProgram, compileCel, firstLine } from './cel.ts';
import { toCelBy } from './cel-value.ts';
import { type Correlation, correlatePart, unchanged } from './correlate.ts';
import { type Cause, invalid } from './field-errors.ts';
import { goPattern } from './formats.ts';
import type { JsonObject } from './json.ts';
import { nodesOf, partsOf, type Rule, type Schema, SchemaError } from './schema.ts';

type CompiledRule = { readonly rule: Rule; readonly program: CelProgram; readonly usesOldSelf: boolean };
type RuleCauses = { causes: Cause[]; warnings: Cause[] };

/** The rules of a schema, compiled. Throws `SchemaError` for a rule or a pattern that does not compile. */
export function createRules(schema: Schema) {
  const compiled = new Map<Schema, readonly CompiledRule[]>();
  for (const { node, path } of nodesOf(schema)) {
    const { pattern, 'x-kubernetes-validations': rules = [] } = node;
    if (pattern !== undefined) {
      const why = "must be a valid regular expression, but isn't";
      compile(() => goPattern(pattern), [...path, 'pattern'].join('.'), why);
    }
    if (rules.length > 0) {
      const at = [...path, 'x-kubernetes-validations'].join('.');
      compiled.set(
        node,
        rules.map((rule, i) => compileRule(rule, `${at}[${i}].rule`)),
      );
    }
  }
  return {
    present: compiled.size > 0,
    validate: (object: JsonObject, correlation: Correlation | undefined): RuleCauses => {
      const found: RuleCauses = { causes: [], warnings: [] };
      const root = { value: object, schema, path: '', correlation, kept: unchanged(correlation) };
      if (compiled.size > 0) walk(root, compiled, found);
      return found;
    },
  };
}

function compileRule(rule: Rule, field: string): CompiledRule {
  const program = compile(() => compileCel(rule.rule, 'rule'), field, 'compilation failed');
  return { rule, program, usesOldSelf: /\boldSelf\b/.test(rule.rule) };
}

function compile<T>(step: () => T, field: string, why: string): T {
  try {
    return step();
  } catch (cause) {
    throw new SchemaError(field, `${why}: ${firstLine(cause)}`, { cause });
  }
}

type Node = {
  readonly value: unknown;
  readonly schema: Schema | undefined;
  readonly path: string;
  readonly correlation: Correlation | undefined;
  /** Nothing changed here or above since the old object: errors are warnings. */
  readonly kept: boolean;
};

function walk(node: Node, compiled: Map<Schema, readonly CompiledRule[]>, found: RuleCauses): void {
  const { value, schema, path } = node;
  if (schema === undefined || (value === null && schema.nullable === true)) return;
  for (const rule of compiled.get(schema) ?? []) check(rule, node, found);
  for (const part of partsOf(value, schema, path)) {
    const correlation = correlatePart(node.correlation, part.key);
    walk({ ...part, correlation, kept: node.kept || unchanged(correlation) }, compiled, found);
  }
}

function check(compiled: CompiledRule, node: Node, found: RuleCauses): void {
  const { usesOldSelf, rule } = compiled;
  if (usesOldSelf && node.correlation === undefined && rule.optionalOldSelf !== true) return;
  const cause = verdict(compiled, variablesOf(compiled, node), node);
  if (cause === undefined) return;
  if (!usesOldSelf && node.kept) found.warnings.push(cause);
  else found.causes.push(cause);
}

function variablesOf(
  { usesOldSelf, rule }: CompiledRule,
  { value, schema, path, correlation }: Node,
): Record<string, unknown> {
  const resource = path === '';
  const self = toCelBy(schema, value, resource);
  if (!usesOldSelf) return { self };
  const old = correlation && toCelBy(schema, correlation.old, resource);
  if (rule.optionalOldSelf !== true) return { self, oldSelf: old };
  return { self, oldSelf: old === undefined ? Optional.none() : Optional.of(old) };
}

function verdict({ rule, program }: CompiledRule, values: Record<string, unknown>, node: Node): Cause | undefined {
  const type = node.schema?.type ?? ''; // quoted where another cause quotes the value
  try {
    if (program(values) === true) return undefined;
  } catch (error) {
    return invalid(node.path, type, failure(rule, firstLine(error)));
  }
  // At the root there is nothing before the path: `metadata.name`.
  const field = `${node.path}${rule.fieldPath ?? ''}`.replace(/^\./, '') || '<nil>';
  return invalid(field, type, rule.message?.trim() || `failed rule: ${rule.rule.trim()}`);
}

function failure(rule: Rule, error: string): string {
  const what = rule.message?.trim() || rule.rule.trim();
  if (!error.startsWith('no such overload')) return `${error} evaluating rule: ${what}`;
  return `'${error}': call arguments did not match a supported operator, function or macro signature for rule: ${what}`;
}
