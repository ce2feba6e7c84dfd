// What may a Secret be, and how does `stringData` become `data`?
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resource.ts';
import type { Cause } from '../schema/cause.ts';
import { forbidden, invalid, required } from '../schema/field-errors.ts';
import { isObject, sameJson } from '../schema/json.ts';
import { dataKeyCauses, immutable, maxDataBytes } from './data-keys.ts';

/** Entries that must be there, by type. */
const entriesByType: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
};

export const secret: Strategy = {
  applyDefaults(object) {
    const typed = object.type === undefined || object.type === '' ? withMember(object, 'type', 'Opaque') : object;
    if (!isObject(typed.stringData)) return withMember(typed, 'stringData', undefined);
    const written = Object.entries(typed.stringData).map(([key, text]) => {
      return [key, typeof text === 'string' ? Buffer.from(text, 'utf8').toString('base64') : text];
    });
    const data = { ...(isObject(typed.data) ? typed.data : {}), ...Object.fromEntries(written) };
    return withMember(withMember(typed, 'stringData', undefined), 'data', data);
  },
  validate: (object, old) => [
    ...dataKeyCauses(object.data, 'data'),
    ...size(object),
    ...entries(object),
    ...changes(object, old),
  ],
  selectable: { type: (object) => String(object.type ?? '') },
};

function size({ data }: KubeObject): Cause[] {
  const bytes = Object.values(isObject(data) ? data : {}).reduce<number>((sum, value) => {
    return sum + (typeof value === 'string' ? Buffer.byteLength(value, 'base64') : 0);
  }, 0);
  if (bytes <= maxDataBytes) return [];
  return [
    { field: 'data', reason: 'FieldValueTooLong', message: `Too long: may not be more than ${maxDataBytes} bytes` },
  ];
}

function entries({ type, data }: KubeObject): Cause[] {
  const wanted = entriesByType[String(type)] ?? [];
  return wanted.filter((key) => !isObject(data) || !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`));
}

function changes(object: KubeObject, old: KubeObject | undefined): Cause[] {
  if (old === undefined) return [];
  const causes = object.type === old.type ? [] : [invalid('type', object.type, 'field is immutable')];
  if (old.immutable !== true) return causes;
  if (object.immutable !== true) causes.push(forbidden('immutable', immutable));
  if (!sameJson(object.data ?? {}, old.data ?? {})) causes.push(forbidden('data', immutable));
  return causes;
}
