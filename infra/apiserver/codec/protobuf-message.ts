// How are a message's bytes read when its JSON schema and its field numbers are known?
import protobuf from 'protobufjs/minimal.js';
import { isObject, type JsonObject, setMember } from '../schema/json.ts';
import type { Definition } from './core-kinds.ts';

/**
 * Field numbers by member; below zero where JSON leaves the zero value out (Go writes it in protobuf all the same). A nested
 * table is a struct that JSON writes inline, `#` its own number.
 */
export type Numbers = { readonly [member: string]: number | Numbers };

type Values = readonly (Uint8Array | bigint)[];

/** Reads messages by the wire format: the schema says what a field is, the numbers where it is. */
export function createReader(
  definitions: Readonly<Record<string, Definition>>,
  messages: Readonly<Record<string, Numbers>>,
) {
  return {
    message: (name: string, bytes: Uint8Array): JsonObject => readMessage(name, bytes),
    fields: (bytes: Uint8Array): Map<number, Uint8Array[]> => onlyBytes(wireFields(bytes)),
  };

  function readMessage(name: string, bytes: Uint8Array): JsonObject {
    const special = scalars[name.slice(name.lastIndexOf('.') + 1)];
    if (special) return special(wireFields(bytes)) as JsonObject;
    const properties = definitions[name]?.properties;
    const object: JsonObject = {};
    fill(object, { bytes, numbers: messages[name] ?? {}, properties: isObject(properties) ? properties : {} });
    return object;
  }

  function fill(object: JsonObject, from: { bytes: Uint8Array; numbers: Numbers; properties: JsonObject }): void {
    const fields = wireFields(from.bytes);
    for (const [member, number] of Object.entries(from.numbers)) {
      if (member === '#') continue;
      if (typeof number !== 'number') {
        for (const bytes of blobs(fields.get(Number(number['#'])))) fill(object, { ...from, bytes, numbers: number });
        continue;
      }
      const values = fields.get(Math.abs(number));
      const value = values && readField(values, from.properties[member]);
      if (value !== undefined && !(number < 0 && isZero(value))) setMember(object, member, value);
    }
  }

  function readField(values: Values, schema: unknown): unknown {
    const node = isObject(schema) ? schema : {};
    if (node.type === 'array') return values.map((value) => readValue(value, node.items));
    if (node.additionalProperties !== undefined) return readMap(values, node.additionalProperties);
    return readValue(values.at(-1), node);
  }

  function readMap(values: Values, schema: unknown): JsonObject {
    const map: JsonObject = {};
    for (const entry of blobs(values)) {
      const fields = wireFields(entry);
      const value = fields.get(2) ?? [new Uint8Array()];
      setMember(map, utf8(fields.get(1)?.[0]), readValue(value.at(-1), schema));
    }
    return map;
  }

  function readValue(value: Uint8Array | bigint | undefined, schema: unknown): unknown {
    const node = isObject(schema) ? schema : {};
    const reference = referenceOf(node);
    if (typeof value === 'bigint') return node.type === 'boolean' ? value !== 0n : Number(BigInt.asIntN(64, value));
    if (value === undefined) return undefined;
    if (reference !== undefined) return readMessage(reference, value);
    if (node.format === 'byte') return Buffer.from(value).toString('base64');
    if (node.type === 'array') return readField(wireFields(value).get(1) ?? [], node); // ExtraValue: a message of one list
    return utf8(value);
  }
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false || value === null;
}

/** Messages that JSON writes as something else. */
const scalars: Readonly<Record<string, (fields: Map<number, Values>) => unknown>> = {
  Time: timestamp,
  MicroTime: (fields) => timestamp(fields, 6),
  Quantity: (fields) => utf8(fields.get(1)?.[0]),
  IntOrString: (fields) => (fields.get(1)?.[0] === 1n ? utf8(fields.get(3)?.[0]) : integer(fields.get(2)?.[0])),
  FieldsV1: (fields) => JSON.parse(utf8(fields.get(1)?.[0]) || '{}'),
  RawExtension: (fields) => JSON.parse(utf8(fields.get(1)?.[0]) || 'null'),
};

function timestamp(fields: Map<number, Values>, digits = 0): string | null {
  if (!fields.has(1)) return null; // the zero time is null in JSON
  const whole = new Date(integer(fields.get(1)?.[0]) * 1000).toISOString().replace('.000Z', '');
  const nanos = String(integer(fields.get(2)?.[0])).padStart(9, '0');
  return digits === 0 ? `${whole}Z` : `${whole}.${nanos.slice(0, digits)}Z`;
}

function integer(value: Uint8Array | bigint | undefined): number {
  return typeof value === 'bigint' ? Number(BigInt.asIntN(64, value)) : 0;
}

function utf8(value: Uint8Array | bigint | undefined): string {
  return typeof value === 'bigint' || value === undefined ? '' : Buffer.from(value).toString('utf8');
}

function blobs(values: Values | undefined): Uint8Array[] {
  return (values ?? []).filter((value) => typeof value !== 'bigint');
}

function onlyBytes(fields: Map<number, Values>): Map<number, Uint8Array[]> {
  return new Map([...fields].map(([number, values]) => [number, blobs(values)]));
}

function referenceOf(node: JsonObject): string | undefined {
  const only = Array.isArray(node.allOf) ? node.allOf[0] : node;
  const reference = isObject(only) ? only.$ref : undefined;
  return typeof reference === 'string' ? reference.slice(reference.lastIndexOf('/') + 1) : undefined;
}

/** The fields of a message by number: varints as bigint, everything with a length as bytes. */
function wireFields(bytes: Uint8Array): Map<number, (Uint8Array | bigint)[]> {
  const reader = protobuf.Reader.create(bytes);
  const fields = new Map<number, (Uint8Array | bigint)[]>();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const value = readWire(reader, tag & 7);
    if (value !== undefined) fields.set(tag >>> 3, [...(fields.get(tag >>> 3) ?? []), value]);
  }
  return fields;
}

function readWire(reader: protobuf.Reader, wireType: number): Uint8Array | bigint | undefined {
  if (wireType === 2) return reader.bytes();
  if (wireType === 0) {
    const value = reader.uint64();
    return typeof value === 'number' ? BigInt(value) : (BigInt(value.high >>> 0) << 32n) | BigInt(value.low >>> 0);
  }
  reader.skipType(wireType);
  return undefined;
}
