// How do the strategies read and default members whose schema has not been judged yet?
import { isObject, type JsonObject } from '../schema/json.ts';

/** The member as an object; empty where it is absent or of another type. */
export function objectAt(value: unknown, key: string): JsonObject {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : {};
}

/** The member as a list; empty where it is absent or of another type. */
export function listAt(value: unknown, key: string): readonly unknown[] {
  const found = isObject(value) ? value[key] : undefined;
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

/** Every object of a list changed; other items are left for the schema to refuse. */
export function eachObject(value: unknown, change: (item: JsonObject) => JsonObject): unknown {
  return Array.isArray(value) ? value.map((item) => (isObject(item) ? change(item) : item)) : value;
}
