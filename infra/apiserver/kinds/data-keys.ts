// May an entry of a Secret or ConfigMap be called so?
import type { Cause } from '../schema/cause.ts';
import { invalid } from '../schema/field-errors.ts';
import { isObject } from '../schema/json.ts';

/** Causes for the names of a `data` map's entries. */
export function dataKeyCauses(data: unknown, path: string): Cause[] {
  if (!isObject(data)) return [];
  return Object.keys(data).flatMap((key) => {
    const why = wrongDataKey(key);
    return why === undefined ? [] : [invalid(`${path}[${key}]`, key, why)];
  });
}

function wrongDataKey(key: string): string | undefined {
  if (key.length > 253) return 'must be no more than 253 characters';
  if (key === '.' || key === '..') return `must not be '${key}'`;
  if (key.startsWith('..')) return "must not start with '..'";
  if (/^[-._a-zA-Z0-9]+$/.test(key)) return undefined;
  return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
}

/** The real server's limit for all entries together. */
export const maxDataBytes = 1024 * 1024;

export const immutable = 'field is immutable when `immutable` is set';
