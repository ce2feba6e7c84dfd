// Structural schemas: the part of OpenAPI v3 that a CustomResourceDefinition may hold, made from zod with the rules
// beside the fields.
import * as z from 'zod';
import { type Validation, validationsOf } from '../validation/rule.ts';

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

/** Members in the order in which they are written. Other members that zod makes of a schema are not structural. */
const MEMBERS = [
  ...['type', 'description', 'format', 'pattern', 'enum', 'minimum', 'maximum', 'minLength', 'maxLength', 'maxItems'],
  ...['minProperties', 'maxProperties', 'default', 'required', 'properties', 'additionalProperties', 'items'],
  ...['x-kubernetes-list-type', 'x-kubernetes-list-map-keys', 'x-kubernetes-validations'],
];
const TYPES = ['object', 'array', 'string', 'integer', 'boolean'];

/**
 * The schema as the API server wants it, rules included. Throws, with the path, on what is not structural (unions,
 * free-form objects), on a field without a description or a bound, and on a default inside a list item, which makes
 * every unchanged `kubectl apply` a change.
 */
export function toStructural(schema: z.ZodType, path: string): StructuralSchema {
  const json: unknown = z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', override: addRules });
  return structural(json, { path, isCorrelated: true });
}

/** Adds the members that zod does not know, and removes those that only zod adds. */
function addRules({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: JsonSchema }): void {
  const validations = validationsOf(zodSchema).map(({ id: _, ...validation }) => validation);
  if (validations.length > 0) jsonSchema['x-kubernetes-validations'] = validations;
  // The API server validates a default before it fills in the defaults below, so the default is written out in full.
  if (zodSchema._zod.def.type === 'prefault') jsonSchema.default = z.parse(zodSchema, undefined);
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}

type JsonSchema = z.core.JSONSchema.BaseSchema & { 'x-kubernetes-validations'?: unknown };
type Node = Readonly<Record<string, unknown>>;

interface SchemaPosition {
  /** `[]` stands for an item of a list, `{}` for a value of a map. */
  readonly path: string;
  /** Whether the API server finds the stored value of this place: not inside a list without keys. */
  readonly isCorrelated: boolean;
}

function structural(json: unknown, position: SchemaPosition): StructuralSchema {
  const node = json as Node;
  const problem = problemOf(node, position);
  if (problem !== undefined) throw new Error(`${position.path}: ${problem}`);
  const members = MEMBERS.filter((member) => node[member] !== undefined);
  return Object.fromEntries(
    members.map((member) => [member, write(member, node, position)]),
  ) as unknown as StructuralSchema;
}

function problemOf(node: Node, { path }: SchemaPosition): string | undefined {
  const stranger = Object.keys(node).find((member) => !MEMBERS.includes(member));
  if (stranger !== undefined) return `${stranger} is not structural`;
  if (!TYPES.includes(String(node.type))) return `${String(node.type)} is not a structural type`;
  // Items and map values need none of their own.
  if (!/[\]}]$/.test(path) && node.description === undefined) return 'no description';
  if (path.includes('[]') && node.default !== undefined) return 'a default inside a list item';
  const unbounded = missingBound(node);
  return unbounded === undefined ? undefined : `no ${unbounded}`;
}

/** Without bounds the API server takes the worst case for the cost of every rule above, and refuses the CRD. */
function missingBound(node: Node): string | undefined {
  if (node.type === 'string' && node.enum === undefined && node.maxLength === undefined) return 'maxLength';
  if (node.type === 'integer' && node.minimum === undefined) return 'minimum';
  if (node.type === 'array' && node.maxItems === undefined) return 'maxItems';
  if (node.type !== 'object' || node.properties !== undefined) return undefined;
  if (node.additionalProperties === undefined) return 'properties';
  return node.maxProperties === undefined ? 'maxProperties' : undefined;
}

function write(member: string, node: Node, position: SchemaPosition): unknown {
  const value = node[member];
  switch (member) {
    case 'pattern':
      return String(value).replaceAll('\\/', '/');
    case 'items': {
      const isCorrelated = position.isCorrelated && node['x-kubernetes-list-type'] === 'map';
      return structural(value, { path: `${position.path}[]`, isCorrelated });
    }
    case 'additionalProperties':
      return structural(value, { ...position, path: `${position.path}{}` });
    case 'properties': {
      const properties = Object.entries(value as Node).map(([name, child]) => [
        name,
        structural(child, { ...position, path: `${position.path}.${name}` }),
      ]);
      return Object.fromEntries(properties);
    }
    case 'x-kubernetes-validations':
      return position.isCorrelated ? (value as Validation[]).map(ratcheting) : value;
    default:
      return value;
  }
}

/**
 * The same rule, which also holds where it was broken before at the same field, and the field has not changed. The API
 * server does so by itself only if nothing below the rule's position changed: a rule at `spec` would hold up the block
 * of a key that an older CRD let in (DESIGN 5).
 */
function ratcheting(validation: Validation): Validation {
  const { rule, fieldPath } = validation;
  if (fieldPath === undefined || /\boldSelf\b/.test(rule)) return validation;
  const [now, before] = [`self${fieldPath}`, `old${fieldPath}`];
  const same = `has(${now}) == has(${before}) && (!has(${now}) || ${now} == ${before})`;
  const wasBroken = `!(${rule.replace(/\bself\b/g, 'old')})`;
  // `self == old` stands for an old object so malformed that the rule cannot run on it. `exists` over a list of one
  // names it.
  const letBe = `oldSelf.hasValue() && [oldSelf.value()].exists(old, self == old || (${same} && ${wasBroken}))`;
  return { ...validation, rule: `(${rule}) || (${letBe})`, optionalOldSelf: true };
}
