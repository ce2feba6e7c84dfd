// What does accepted.ts ask of a value? The few forms that our schemas are made of.
import { isWithin } from './within.ts';

export type Json = Readonly<Record<string, unknown>>;

export const isMap = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isText = (value: unknown, longest: number, pattern?: RegExp): boolean =>
  typeof value === 'string' && isWithin(longest, value) && (pattern === undefined || pattern.test(value));

export const isInteger = (value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): boolean =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;

export const isListOf = (value: unknown, most: number, isItem: (item: unknown) => boolean): value is unknown[] =>
  Array.isArray(value) && value.length <= most && value.every(isItem);

/** Whether no two are the same text. */
export const areUnique = (texts: readonly unknown[]): boolean =>
  texts.length < 2 || new Set(texts).size === texts.length;

export function isMapOf(value: unknown, least: number, most: number, isValue: (value: unknown) => boolean): boolean {
  if (!isMap(value)) return false;
  let entries = 0;
  for (const name in value) {
    // The schema's own reader leaves this one out, so only the schema can judge it.
    if (name === '__proto__' || !isValue(value[name])) return false;
    entries += 1;
  }
  return entries >= least && entries <= most;
}
