// What may a ConfigMap be?
import type { KubeObject } from '../object.ts';
import type { Strategy } from '../resource.ts';
import type { Cause } from '../schema/cause.ts';
import { forbidden, invalid } from '../schema/field-errors.ts';
import { isObject, sameJson } from '../schema/json.ts';
import { dataKeyCauses, immutable, maxDataBytes } from './data-keys.ts';

export const configMap: Strategy = {
  validate: (object, old) => [
    ...dataKeyCauses(object.data, 'data'),
    ...dataKeyCauses(object.binaryData, 'binaryData'),
    ...twice(object),
    ...size(object),
    ...frozen(object, old),
  ],
};

function twice({ data, binaryData }: KubeObject): Cause[] {
  if (!isObject(data) || !isObject(binaryData)) return [];
  return Object.keys(binaryData)
    .filter((key) => Object.hasOwn(data, key))
    .map((key) => invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'));
}

function size({ data, binaryData }: KubeObject): Cause[] {
  const texts = Object.values(isObject(data) ? data : {}).map((value) => Buffer.byteLength(String(value)));
  const binary = Object.values(isObject(binaryData) ? binaryData : {}).map((value) =>
    Buffer.byteLength(String(value), 'base64'),
  );
  const bytes = [...texts, ...binary].reduce((sum, one) => sum + one, 0);
  if (bytes <= maxDataBytes) return [];
  return [{ field: '', reason: 'FieldValueTooLong', message: `Too long: may not be more than ${maxDataBytes} bytes` }];
}

function frozen(object: KubeObject, old: KubeObject | undefined): Cause[] {
  if (old?.immutable !== true) return [];
  const causes: Cause[] = object.immutable === true ? [] : [forbidden('immutable', immutable)];
  for (const member of ['data', 'binaryData']) {
    if (!sameJson(object[member] ?? {}, old[member] ?? {})) causes.push(forbidden(member, immutable));
  }
  return causes;
}
