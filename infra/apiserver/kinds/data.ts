// Secrets and ConfigMaps: what their entries may be called, how large they may be, and what cannot change.
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resource.ts';
import { type Cause, forbidden, invalid, required, tooLong } from '../schema/field-errors.ts';
import { isObject, type JsonObject, objectAt, sameJson } from '../schema/json.ts';

/** The real server's limit for all entries together. */
const maxBytes = 1024 * 1024;

export const configMap: Strategy = {
  validate(object, old) {
    const [data, binaryData] = [objectAt(object, 'data'), objectAt(object, 'binaryData')];
    const twice = Object.keys(binaryData).filter((key) => Object.hasOwn(data, key));
    return [
      ...keyCauses(data, 'data'),
      ...keyCauses(binaryData, 'binaryData'),
      ...twice.map((key) => invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')),
      ...(sizeOf(data, 'utf8') + sizeOf(binaryData, 'base64') > maxBytes ? [tooLong('', maxBytes)] : []),
      ...immutableCauses(object, old, ['data', 'binaryData']),
    ];
  },
};

/** Entries that must be there, by type. */
const entriesByType: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
};

export const secret: Strategy = {
  /** `stringData` becomes `data`, and the type is Opaque where none is given. */
  applyDefaults(object) {
    const { stringData, ...rest } = object;
    const typed = withMember(rest as KubeObject, 'type', object.type || 'Opaque');
    if (!isObject(stringData)) return typed;
    const written = Object.entries(stringData).map(([key, text]) => {
      return [key, Buffer.from(String(text), 'utf8').toString('base64')];
    });
    return withMember(typed, 'data', { ...objectAt(object, 'data'), ...Object.fromEntries(written) });
  },
  validate(object, old) {
    const data = objectAt(object, 'data');
    const missing = (entriesByType[String(object.type)] ?? []).filter((key) => !Object.hasOwn(data, key));
    return [
      ...keyCauses(data, 'data'),
      ...(sizeOf(data, 'base64') > maxBytes ? [tooLong('data', maxBytes)] : []),
      ...missing.map((key) => required(`data[${key}]`)),
      ...(old === undefined || object.type === old.type ? [] : [invalid('type', object.type, 'field is immutable')]),
      ...immutableCauses(object, old, ['data']),
    ];
  },
  selectable: { type: (object) => String(object.type ?? '') },
};

function keyCauses(data: JsonObject, path: string): Cause[] {
  return Object.keys(data).flatMap((key) => {
    const why = wrongKey(key);
    return why === undefined ? [] : [invalid(`${path}[${key}]`, key, why)];
  });
}

function wrongKey(key: string): string | undefined {
  if (key.length > 253) return 'must be no more than 253 characters';
  if (key === '.' || key === '..') return `must not be '${key}'`;
  if (key.startsWith('..')) return "must not start with '..'";
  if (/^[-._a-zA-Z0-9]+$/.test(key)) return undefined;
  return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
}

function sizeOf(data: JsonObject, encoding: BufferEncoding): number {
  return Object.values(data).reduce<number>((sum, value) => sum + Buffer.byteLength(String(value), encoding), 0);
}

function immutableCauses(object: KubeObject, old: KubeObject | undefined, members: readonly string[]): Cause[] {
  if (old?.immutable !== true) return [];
  const changed = members.filter((member) => !sameJson(object[member] ?? {}, old[member] ?? {}));
  const fields = object.immutable === true ? changed : ['immutable', ...changed];
  return fields.map((field) => forbidden(field, 'field is immutable when `immutable` is set'));
}
