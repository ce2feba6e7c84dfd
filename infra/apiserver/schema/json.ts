// JSON values: compared, and read where a member may be missing.

/** A decoded JSON object, as the API server stores, validates and answers it. */
export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether there is nothing in a text, a list or an object. */
export function isEmpty(value: unknown): boolean {
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

/** Deep equality of JSON values; the order of an object's members does not count. */
export { isDeepStrictEqual as sameJson } from 'node:util';

/** Sets a member that may be named `__proto__`: it becomes an own member, never the prototype. */
export function setMember(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

/** A member that the object itself has, or undefined: never one of `Object.prototype`. */
export function member(object: unknown, key: string): unknown {
  return isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The member as an object; empty where it is absent or of another type. */
export function objectAt(value: unknown, key: string): JsonObject {
  const found = member(value, key);
  return isObject(found) ? found : {};
}

/** The member as a list; empty where it is absent or of another type. */
export function listAt(value: unknown, key: string): readonly unknown[] {
  const found = member(value, key);
  return Array.isArray(found) ? found : [];
}

/** The object with members it lacks filled in; null counts as lacking. */
export function withDefaults(value: unknown, defaults: JsonObject): JsonObject {
  const given = isObject(value) ? value : {};
  const missing = Object.entries(defaults).filter(
    ([key, made]) => (given[key] ?? undefined) === undefined && made !== undefined,
  );
  return { ...given, ...Object.fromEntries(missing) };
}
