// Do an object's parts obey their `x-kubernetes-validations`?
import type { Cause } from './cause.ts';
import { type CelProgram, compileCel } from './cel.ts';
import { type Correlation, correlateItem, correlateMember, unchanged } from './correlate.ts';
import { isObject, type JsonObject } from './json.ts';
import { duplicate, forbidden, invalid, required } from './refusals.ts';
import { memberSchema, type Rule, type Schema } from './schema.ts';

type Compiled = {
  readonly rule: Rule;
  readonly program: CelProgram;
  readonly words?: CelProgram;
  readonly usesOldSelf: boolean;
};
type Found = { causes: Cause[]; warnings: Cause[] };

/** A rule that cannot be compiled; the message names the field and the function or the place. */
export class SchemaError extends Error {}

export function createRules(schema: Schema) {
  const compiled = new Map<Schema, readonly Compiled[]>();
  compileBelow(schema, '', compiled);
  return {
    present: compiled.size > 0,
    judge: (object: JsonObject, correlation: Correlation | undefined): Found => {
      const found: Found = { causes: [], warnings: [] };
      if (compiled.size > 0) walk({ value: object, schema, path: '', correlation }, compiled, found);
      return found;
    },
  };
}

function compileBelow(schema: Schema, path: string, compiled: Map<Schema, readonly Compiled[]>): void {
  const rules = schema['x-kubernetes-validations'] ?? [];
  if (rules.length > 0)
    compiled.set(
      schema,
      rules.map((rule) => compile(rule, path)),
    );
  for (const [key, child] of Object.entries(schema.properties ?? {}))
    compileBelow(child, path === '' ? key : `${path}.${key}`, compiled);
  if (schema.items) compileBelow(schema.items, `${path}[*]`, compiled);
  if (typeof schema.additionalProperties === 'object')
    compileBelow(schema.additionalProperties, `${path}[*]`, compiled);
}

function compile(rule: Rule, path: string): Compiled {
  try {
    const program = compileCel(rule.rule);
    const usesOldSelf = /\boldSelf\b/.test(rule.rule);
    return rule.messageExpression
      ? { rule, program, usesOldSelf, words: compileCel(rule.messageExpression) }
      : { rule, program, usesOldSelf };
  } catch (cause) {
    throw new SchemaError(
      `compiling the rule ${JSON.stringify(rule.rule)} of ${path || 'the root'}: ${message(cause)}`,
      { cause },
    );
  }
}

type Node = {
  readonly value: unknown;
  readonly schema: Schema | undefined;
  readonly path: string;
  readonly correlation: Correlation | undefined;
};

function walk(node: Node, compiled: Map<Schema, readonly Compiled[]>, found: Found): void {
  const { value, schema, path, correlation } = node;
  if (schema === undefined || (value === null && schema.nullable === true)) return;
  for (const rule of compiled.get(schema) ?? []) judge(rule, node, found);
  if (Array.isArray(value)) {
    value.forEach((item, i) => {
      walk(
        { value: item, schema: schema.items, path: `${path}[${i}]`, correlation: correlateItem(correlation, i) },
        compiled,
        found,
      );
    });
  } else if (isObject(value)) {
    for (const [key, child] of Object.entries(value)) {
      const at = path === '' ? key : `${path}.${key}`;
      walk(
        { value: child, schema: memberSchema(schema, key), path: at, correlation: correlateMember(correlation, key) },
        compiled,
        found,
      );
    }
  }
}

function judge({ rule, program, words, usesOldSelf }: Compiled, node: Node, found: Found): void {
  if (usesOldSelf && node.correlation === undefined && rule.optionalOldSelf !== true) return;
  const variables = { self: node.value, ...(node.correlation ? { oldSelf: node.correlation.old } : {}) };
  const cause = verdict({ rule, program, usesOldSelf, ...(words ? { words } : {}) }, variables, node);
  if (cause === undefined) return;
  if (!usesOldSelf && unchanged(node.correlation)) found.warnings.push(cause);
  else found.causes.push(cause);
}

function verdict(
  { rule, program, words }: Compiled,
  variables: Record<string, unknown>,
  { path, value }: Node,
): Cause | undefined {
  // At the root there is nothing before the path: `metadata.name`.
  const field = (path + (rule.fieldPath ?? '')).replace(/^\./, '');
  try {
    if (program(variables) === true) return undefined;
  } catch (error) {
    return invalid(field, value, `rule evaluation error: ${message(error)}`);
  }
  return worded(rule, field, value, say(rule, words, variables));
}

function say(rule: Rule, words: CelProgram | undefined, variables: Record<string, unknown>): string {
  try {
    const said = words?.(variables);
    if (typeof said === 'string' && said.trim() !== '' && !said.includes('\n')) return said;
  } catch {
    // A messageExpression that fails falls back to the message: the API server's rule.
  }
  return rule.message ?? `failed rule: ${rule.rule.replaceAll('\n', ' ')}`;
}

function worded(rule: Rule, field: string, value: unknown, detail: string): Cause {
  if (rule.reason === 'FieldValueForbidden') return forbidden(field, detail);
  if (rule.reason === 'FieldValueRequired') return required(field, detail);
  if (rule.reason === 'FieldValueDuplicate') return duplicate(field, value);
  return invalid(field, isObject(value) ? 'object' : Array.isArray(value) ? 'array' : value, detail);
}

function message(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
}
