// `x-kubernetes-validations`: the CEL rules of a schema's parts.
import { Optional } from '@marcbachmann/cel-js';
import { type CelProgram, compileOverCel, firstLine } from './cel.ts';
import { toCelBy } from './cel-value.ts';
import { type Correlation, correlateItem, correlateMember, unchanged } from './correlate.ts';
import { type Cause, duplicate, forbidden, invalid, required } from './field-errors.ts';
import { isObject, type JsonObject } from './json.ts';
import { memberSchema, type Rule, type Schema } from './schema.ts';
import { nodesOf, SchemaError } from './schema-nodes.ts';

type Compiled = {
  readonly rule: Rule;
  readonly program: CelProgram;
  readonly message?: CelProgram;
  readonly usesOldSelf: boolean;
};
type Found = { causes: Cause[]; warnings: Cause[] };

const variables = ['self', 'oldSelf'];

/** The rules of a schema, compiled. Throws `SchemaError`. */
export function createRules(schema: Schema) {
  const compiled = new Map<Schema, readonly Compiled[]>();
  for (const { node, path } of nodesOf(schema)) {
    const rules = node['x-kubernetes-validations'] ?? [];
    if (rules.length === 0) continue;
    const at = [...path, 'x-kubernetes-validations'].join('.');
    compiled.set(
      node,
      rules.map((rule, i) => compileRule(rule, `${at}[${i}]`)),
    );
  }
  return {
    present: compiled.size > 0,
    validate: (object: JsonObject, correlation: Correlation | undefined): Found => {
      const found: Found = { causes: [], warnings: [] };
      const root = { value: object, schema, path: '', correlation, kept: unchanged(correlation) };
      if (compiled.size > 0) walk(root, compiled, found);
      return found;
    },
  };
}

function compileRule(rule: Rule, path: string): Compiled {
  const program = compileOrThrow(rule.rule, `${path}.rule`);
  const usesOldSelf = /\boldSelf\b/.test(rule.rule);
  if (!rule.messageExpression) return { rule, program, usesOldSelf };
  return { rule, program, usesOldSelf, message: compileOrThrow(rule.messageExpression, `${path}.messageExpression`) };
}

function compileOrThrow(expression: string, field: string): CelProgram {
  try {
    return compileOverCel(expression, variables);
  } catch (cause) {
    throw new SchemaError(field, expression, `compilation failed: ${firstLine(cause)}`, { cause });
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

function walk(node: Node, compiled: Map<Schema, readonly Compiled[]>, found: Found): void {
  const { value, schema } = node;
  if (schema === undefined || (value === null && schema.nullable === true)) return;
  for (const rule of compiled.get(schema) ?? []) check(rule, node, found);
  for (const child of childrenOf(node))
    walk({ ...child, kept: node.kept || unchanged(child.correlation) }, compiled, found);
}

function childrenOf({ value, schema, path, correlation }: Node): Omit<Node, 'kept'>[] {
  if (Array.isArray(value)) {
    return value.map((item, i) => {
      return { value: item, schema: schema?.items, path: `${path}[${i}]`, correlation: correlateItem(correlation, i) };
    });
  }
  if (!isObject(value)) return [];
  return Object.entries(value).map(([key, child]) => {
    const declared = schema?.properties !== undefined && Object.hasOwn(schema.properties, key);
    const at = declared ? (path === '' ? key : `${path}.${key}`) : `${path}[${key}]`;
    return {
      value: child,
      schema: memberSchema(schema, key),
      path: at,
      correlation: correlateMember(correlation, key),
    };
  });
}

function check(compiled: Compiled, node: Node, found: Found): void {
  const { usesOldSelf, rule } = compiled;
  if (usesOldSelf && node.correlation === undefined && rule.optionalOldSelf !== true) return;
  const cause = verdict(compiled, variablesOf(compiled, node), node);
  if (cause === undefined) return;
  if (!usesOldSelf && node.kept) found.warnings.push(cause);
  else found.causes.push(cause);
}

function variablesOf(
  { usesOldSelf, rule }: Compiled,
  { value, schema, path, correlation }: Node,
): Record<string, unknown> {
  const resource = path === '';
  const self = toCelBy(schema, value, resource);
  if (!usesOldSelf) return { self };
  const old = correlation && toCelBy(schema, correlation.old, resource);
  if (rule.optionalOldSelf !== true) return { self, oldSelf: old };
  return { self, oldSelf: old === undefined ? Optional.none() : Optional.of(old) };
}

function verdict(
  { rule, program, message }: Compiled,
  variables: Record<string, unknown>,
  node: Node,
): Cause | undefined {
  const type = typeName(node.schema);
  try {
    if (program(variables) === true) return undefined;
  } catch (error) {
    return invalid(node.path, type, failure(rule, firstLine(error)));
  }
  // At the root there is nothing before the path: `metadata.name`.
  const field = `${node.path}${plainPath(rule.fieldPath ?? '')}`.replace(/^\./, '') || '<nil>';
  return toCause(rule.reason, field, type, messageOf(rule, message, variables));
}

/** `['foo.bar']` is `.foo.bar` where causes name it. */
function plainPath(fieldPath: string): string {
  return fieldPath.replace(/\['((?:[^'\\]|\\.)*)'\]/g, (_, name: string) => `.${name.replace(/\\(.)/g, '$1')}`);
}

function failure(rule: Rule, error: string): string {
  const what = rule.message?.trim() || rule.rule.trim();
  if (!error.startsWith('no such overload')) return `${error} evaluating rule: ${what}`;
  return `'${error}': call arguments did not match a supported operator, function or macro signature for rule: ${what}`;
}

function messageOf(rule: Rule, expression: CelProgram | undefined, variables: Record<string, unknown>): string {
  try {
    const message = expression?.(variables);
    if (typeof message === 'string' && message.trim() !== '' && !message.includes('\n')) return message.trim();
  } catch {
    // A messageExpression that fails falls back to the message: the API server's rule.
  }
  return rule.message?.trim() || `failed rule: ${rule.rule.trim()}`;
}

/** A type as the API server quotes it where it does not quote the value: `object`, `string`. */
function typeName(schema: Schema | undefined): string {
  return schema?.type ?? '';
}

function toCause(reason: string | undefined, field: string, type: string, detail: string): Cause {
  if (reason === 'FieldValueForbidden') return forbidden(field, detail);
  if (reason === 'FieldValueRequired') return required(field, detail);
  if (reason === 'FieldValueDuplicate') return duplicate(field, type);
  return invalid(field, type, detail);
}
