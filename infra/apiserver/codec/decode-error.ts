// What would Go's decoder say to an object of the wrong types? A typed kind is refused so before anything else is judged.
import { number } from '../schema/go-words.ts';
import { isObject } from '../schema/json.ts';
import { memberSchema, type Schema } from '../schema/schema.ts';
import { nameOf } from './core-kinds.ts';

/** Where the walk is: the Go struct last entered, and the members that led here (keys of maps and indices are not told). */
type Place = { readonly struct: string; readonly path: readonly string[] };

/**
 * The first type error in a core object, or in the metadata of a custom one, after `X in version "v1" cannot be handled as a X: `.
 * `schema` is the kind's `coreSchema` and `struct` its kind; for metadata `objectMeta` and `ObjectMeta`. Null fits everything.
 */
export function decodeError(schema: Schema | undefined, value: unknown, struct: string): string | undefined {
  return errorOf(schema, value, { struct, path: [] });
}

function errorOf(schema: Schema | undefined, value: unknown, place: Place): string | undefined {
  if (schema === undefined || value === null || value === undefined) return undefined;
  const name = goName(schema);
  const special = specials[name ?? ''] ?? specials[schema.format ?? ''];
  if (special) return special(value, place);
  if (!fits(schema, value)) return unmarshal(value, place, goType(schema));
  if (Array.isArray(value)) return first(value, (item) => errorOf(schema.items, item, place));
  if (!isObject(value)) return undefined;
  const struct = name ?? place.struct;
  return first(Object.entries(value), ([key, child]) => {
    const declared = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
    return errorOf(memberSchema(schema, key), child, declared ? { struct, path: [...place.path, key] } : place);
  });
}

function first<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function fits({ type, format, properties }: Schema, value: unknown): boolean {
  if (type === 'string') return typeof value === 'string';
  if (type === 'boolean') return typeof value === 'boolean';
  if (type === 'number') return typeof value === 'number';
  if (type === 'array') return Array.isArray(value);
  if (type === 'object' || properties) return isObject(value);
  if (type !== 'integer') return true;
  return Number.isInteger(value) && (format !== 'int32' || Math.abs(Number(value)) < 2 ** 31);
}

function unmarshal(value: unknown, { struct, path }: Place, type: string): string {
  return `json: cannot unmarshal ${jsonKind(value, type)} into Go struct field ${[struct, ...path].join('.')} of type ${type}`;
}

function jsonKind(value: unknown, type: string): string {
  if (typeof value === 'number') return type.startsWith('int') ? `number ${number(value)}` : 'number';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return 'array';
  return isObject(value) ? 'object' : 'string';
}

/** `DeploymentSpec` of `io.k8s.api.apps.v1.DeploymentSpec`; undefined for a part that has no definition of its own. */
function goName(schema: Schema): string | undefined {
  return nameOf(schema)?.replace(/^.*\./, '');
}

function goType(schema: Schema | undefined): string {
  const name = schema && nameOf(schema);
  if (name) return name.split('.').slice(-2).join('.');
  if (schema?.type === 'array') return `[]${goType(schema.items)}`;
  if (typeof schema?.additionalProperties === 'object') return `map[string]${goType(schema.additionalProperties)}`;
  if (schema?.type === 'boolean') return 'bool';
  if (schema?.type === 'integer') return schema.format ?? 'int64';
  return schema?.type === 'number' ? 'float64' : 'string';
}

type Special = (value: unknown, place: Place) => string | undefined;

const time =
  (layout: string, pattern: RegExp): Special =>
  (value, place) => {
    if (typeof value !== 'string') return unmarshal(value, place, 'string');
    if (pattern.test(value) && !Number.isNaN(Date.parse(value))) return undefined;
    return `parsing time ${JSON.stringify(value)} as "${layout}": cannot parse ${JSON.stringify(value)}`;
  };
const seconds = '2006-01-02T15:04:05';
const quantity = /^[+-]?(\d+(\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?$/;

/** Types that read themselves, with words of their own. */
const specials: Readonly<Record<string, Special>> = {
  Time: time(`${seconds}Z07:00`, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/),
  'date-time': time(`${seconds}Z07:00`, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/),
  MicroTime: time(`${seconds}.000000Z07:00`, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(Z|[+-]\d\d:\d\d)$/),
  Quantity: (value) => {
    if (typeof value === 'number' || (typeof value === 'string' && quantity.test(value))) return undefined;
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  },
  IntOrString: (value, place) =>
    typeof value === 'string' || fits({ type: 'integer', format: 'int32' }, value)
      ? undefined
      : unmarshal(value, place, 'int32'),
  byte: (value, place) => {
    if (typeof value !== 'string') return unmarshal(value, place, '[]uint8');
    const at = base64Error(value);
    return at < 0 ? undefined : `illegal base64 data at input byte ${at}`;
  },
};

/** Where Go's base64 decoder stops, or -1; it skips line breaks. */
function base64Error(text: string): number {
  const bad = text.search(/[^A-Za-z0-9+/=\r\n]/);
  if (bad >= 0) return bad;
  const plain = text.replace(/[\r\n]/g, '');
  const padding = plain.search(/=/);
  if (padding < 0) return plain.length % 4 === 0 ? -1 : plain.length - (plain.length % 4);
  const complete = plain.length % 4 === 0 && /^[^=]*={1,2}$/.test(plain);
  return complete ? -1 : padding;
}
