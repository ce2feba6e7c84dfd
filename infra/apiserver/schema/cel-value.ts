// JSON values as CEL sees them. The schema decides: a `number` is a double even where it is whole.
import { formatFits } from './formats.ts';
import { isObject, type JsonObject, setMember } from './json.ts';
import { memberSchema, type Schema } from './schema.ts';

/** JSON to CEL without a schema: whole numbers are `int` (bigint), others `double`. Values converted before stay. */
export function toCel(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (!isObject(value)) return value;
  const object: JsonObject = {};
  for (const [key, child] of Object.entries(value)) setMember(object, key, toCel(child));
  return object;
}

/**
 * JSON to CEL by its schema, as validation rules see it: a date-time is a timestamp, declared members have their
 * CEL names (`__namespace__`, `foo__dot__bar`). `apiVersion`, `kind` and `metadata.name` of a resource are seen too.
 */
export function toCelBy(schema: Schema | undefined, value: unknown, resource = false): unknown {
  if (typeof value === 'number') return schema?.type === 'number' ? value : toCel(value);
  if (typeof value === 'string') {
    return schema?.format === 'date-time' && formatFits('date-time', value) ? new Date(value) : value;
  }
  if (Array.isArray(value)) return value.map((item) => toCelBy(schema?.items, item));
  if (!isObject(value)) return value;
  const object: JsonObject = {};
  for (const [key, child] of Object.entries(value)) {
    const declared = schema?.properties !== undefined && Object.hasOwn(schema.properties, key);
    const at = memberSchema(schema, key);
    if (at !== undefined) setMember(object, declared ? celName(key) : key, toCelBy(at, child));
  }
  return resource ? { ...object, ...identity(value) } : object;
}

function identity({ apiVersion, kind, metadata }: JsonObject): JsonObject {
  const { name, generateName } = isObject(metadata) ? metadata : {};
  const seen = { apiVersion, kind, metadata: withoutAbsent({ name, generateName }) };
  return withoutAbsent(seen);
}

function withoutAbsent(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

const reserved =
  /^(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)$/;

/** The name by which CEL reaches a declared member. */
function celName(name: string): string {
  if (reserved.test(name)) return `__${name}__`;
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}
