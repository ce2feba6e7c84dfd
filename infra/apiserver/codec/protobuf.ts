// Protobuf bodies (`application/vnd.kubernetes.protobuf`): kubectl sends core kinds so, e.g. in `kubectl create
// secret`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf, { type Field, type Type } from 'protobufjs/light.js';
import { definitionName } from '../schema/core-schemas.ts';
import { isObject, type JsonObject, setMember } from '../schema/json.ts';

/** A body that cannot be read: not the envelope, cut short, or of a kind whose messages are not known. */
export class ProtobufError extends Error {}

const magic = [0x6b, 0x38, 0x73, 0x00]; // "k8s\0"
const messages = protobuf.Root.fromJSON(
  JSON.parse(readFileSync(join(import.meta.dirname, 'core-messages.json'), 'utf8')),
);

/**
 * Decodes the magic number, then a `runtime.Unknown` with the object in it. The object has its apiVersion and kind
 * first, as in JSON.
 */
export function decodeProtobuf(bytes: Uint8Array): JsonObject {
  if (magic.some((byte, i) => bytes[i] !== byte)) {
    throw new ProtobufError('the body does not begin with the magic number of Kubernetes protobuf');
  }
  const { apiVersion, kind, raw } = read('io.k8s.apimachinery.pkg.runtime.Unknown', bytes.subarray(magic.length));
  const name = definitionName(String(apiVersion), String(kind));
  if (name === undefined || !messages.get(flatName(name))) {
    const what = `${kind || 'an object without kind'} (${apiVersion || 'no apiVersion'})`;
    throw new ProtobufError(`${what} cannot be read as protobuf; send JSON`);
  }
  return { apiVersion, kind, ...read(name, Buffer.from(String(raw ?? ''), 'base64')) };
}

/** A message that is cut short, or JSON inside it that cannot be read, is the sender's fault. */
function read(name: string, bytes: Uint8Array): JsonObject {
  const type = messages.lookupType(flatName(name));
  try {
    return toJson(type, type.decode(bytes)) as JsonObject; // the messages of kinds are objects
  } catch (cause) {
    throw new ProtobufError(`the protobuf body cannot be read: ${(cause as Error).message}`, { cause });
  }
}

function flatName(name: string): string {
  return name.replace(/[.-]/g, '_');
}

function toJson(type: Type, message: object): unknown {
  const values: Readonly<Record<string, unknown>> = { ...message }; // without the defaults of its prototype
  const special = specials[type.name.slice(type.name.lastIndexOf('_') + 1)];
  if (special) return special(values);
  const object: JsonObject = {};
  for (const field of type.fieldsArray) {
    const value = toMember(field, values[field.name]);
    if (field.options?.inline) Object.assign(object, value);
    else if (value !== undefined && !(field.options?.omitzero && isZero(value))) setMember(object, field.name, value);
  }
  return object;
}

/** Undefined where nothing was sent: a list or a map without elements is not. */
function toMember(field: Field, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => toValue(field, item));
  if (!field.map || !isObject(value)) return toValue(field, value);
  if (Object.keys(value).length === 0) return undefined;
  const map: JsonObject = {};
  for (const [key, child] of Object.entries(value)) setMember(map, key, toValue(field, child));
  return map;
}

function toValue(field: Field, value: unknown): unknown {
  if (field.resolvedType instanceof protobuf.Type) return toJson(field.resolvedType, value as object);
  if (field.type === 'bytes') return Buffer.from(value as Uint8Array).toString('base64');
  return field.type === 'int64' ? Number(value) : value;
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false || value === null;
}

/** Messages that JSON writes as something else than their fields. */
const specials: Readonly<Record<string, (message: Readonly<Record<string, unknown>>) => unknown>> = {
  Time: (time) => timestamp(time),
  MicroTime: (time) => timestamp(time, 6),
  Quantity: ({ string }) => string ?? '',
  IntOrString: ({ type, intVal, strVal }) => (Number(type) === 1 ? (strVal ?? '') : (intVal ?? 0)),
  FieldsV1: ({ Raw }) => JSON.parse(Buffer.from((Raw ?? '{}') as Uint8Array).toString() || '{}'),
  RawExtension: ({ raw }) => JSON.parse(Buffer.from((raw ?? '') as Uint8Array).toString() || 'null'),
};

function timestamp({ seconds, nanos = 0 }: Readonly<Record<string, unknown>>, digits = 0): string | null {
  if (seconds === undefined) return null; // the zero time is null in JSON
  const whole = new Date(Number(seconds) * 1000).toISOString().replace('.000Z', '');
  return digits === 0 ? `${whole}Z` : `${whole}.${String(nanos).padStart(9, '0').slice(0, digits)}Z`;
}
