// What is a structural schema, and how does a zod schema become one?
import * as z from 'zod';
import type { Rule } from './rule.ts';
import { rulesOf } from './ruled.ts';

export interface Validation {
  readonly rule: string;
  readonly message: string;
  /** Relative to where the rule stands: `.overlap`. */
  readonly fieldPath?: string;
  /** Asked on create too, where `oldSelf` is empty. */
  readonly optionalOldSelf?: true;
}

/** A rule as the API server runs it. */
export const toValidation = ({ cel, message, at }: Rule<never>): Validation => ({
  rule: cel,
  message,
  ...(at !== undefined && { fieldPath: `.${at}` }),
});

/** The part of OpenAPI v3 that a CustomResourceDefinition may hold and that we use. */
export interface StructuralSchema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly default?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly 'x-kubernetes-list-type'?: 'map' | 'set' | 'atomic';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-validations'?: readonly Validation[];
}

/** Members in the order in which they are written. Whatever else zod makes of a schema is not structural. */
const MEMBERS = [
  'type',
  'description',
  'format',
  'pattern',
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'maxItems',
  'minProperties',
  'maxProperties',
  'default',
  'required',
  'properties',
  'additionalProperties',
  'items',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-validations',
] as const;

const TYPES = ['object', 'array', 'string', 'integer', 'boolean'];

/**
 * The schema as the API server wants it, rules included. Throws, with the path, on what is not structural (unions, free-form
 * objects), on a field without a description or a bound, and on a default inside a list item, which makes every unchanged
 * `kubectl apply` a change.
 */
export function toStructural(schema: z.ZodType, path: string): StructuralSchema {
  const json: unknown = z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', override: addRules });
  return structural(json, { path, field: path, inList: false });
}

/** Adds what zod does not know of, and takes away what it adds of its own. */
function addRules({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: JsonSchema }): void {
  const rules = rulesOf(zodSchema);
  if (rules.length > 0) jsonSchema['x-kubernetes-validations'] = rules.map(toValidation);
  // The API server judges a default by the rules before it fills in the defaults below, so it has to be written out.
  if (zodSchema._zod.def.type === 'prefault') jsonSchema.default = z.parse(zodSchema, undefined);
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}

type JsonSchema = z.core.JSONSchema.BaseSchema & { 'x-kubernetes-validations'?: unknown };

interface Place {
  readonly path: string;
  /** The field that `path` is or lies in: items and map values need no description of their own. */
  readonly field: string;
  readonly inList: boolean;
}

function structural(json: unknown, place: Place): StructuralSchema {
  const node = json as Readonly<Record<string, unknown>>;
  const stranger = Object.keys(node).find((member) => !(MEMBERS as readonly string[]).includes(member));
  if (stranger !== undefined) throw new Error(`${place.path}: ${stranger} is not structural`);
  if (!TYPES.includes(String(node.type)))
    throw new Error(`${place.path}: ${String(node.type)} is not a structural type`);
  if (place.path === place.field && node.description === undefined) throw new Error(`${place.path}: no description`);
  if (place.inList && node.default !== undefined) throw new Error(`${place.path}: a default inside a list item`);
  const unbounded = missingBound(node);
  if (unbounded !== undefined) throw new Error(`${place.path}: no ${unbounded}`);
  const entries = MEMBERS.filter((member) => node[member] !== undefined).map((member) => [
    member,
    write(member, node[member], place),
  ]);
  return Object.fromEntries(entries) as unknown as StructuralSchema;
}

function write(member: (typeof MEMBERS)[number], value: unknown, place: Place): unknown {
  if (member === 'pattern') return String(value).replaceAll('\\/', '/');
  if (member === 'items') return structural(value, { ...place, path: `${place.path}[]`, inList: true });
  if (member === 'additionalProperties') return structural(value, { ...place, path: `${place.path}{}` });
  if (member !== 'properties') return value;
  const properties = Object.entries(value as object).map(([name, child]) => {
    const path = `${place.path}.${name}`;
    return [name, structural(child, { path, field: path, inList: place.inList })];
  });
  return Object.fromEntries(properties);
}

/** Without bounds the API server takes the worst case for the cost of every rule above, and refuses the CRD. */
function missingBound(node: Readonly<Record<string, unknown>>): string | undefined {
  if (node.type === 'string' && node.enum === undefined && node.maxLength === undefined) return 'maxLength';
  if (node.type === 'integer' && node.minimum === undefined) return 'minimum';
  if (node.type === 'array' && node.maxItems === undefined) return 'maxItems';
  if (node.type !== 'object' || node.properties !== undefined) return undefined;
  if (node.additionalProperties === undefined) return 'properties';
  return node.maxProperties === undefined ? 'maxProperties' : undefined;
}
