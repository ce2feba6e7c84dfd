// Go's way to print JSON values, as the API server's messages quote them.
import { isObject } from './json.ts';

/** `%q`: a Go string literal, but for control characters, which JSON escapes in its own way. */
export function quote(text: string): string {
  return JSON.stringify(text);
}

/** A value as Go writes it in JSON: members in the order of their names, `<`, `>` and `&` escaped. */
export function goJson(value: unknown): string {
  const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, sortMembers).replace(/[<>&\u2028\u2029]/g, escaped);
}

function sortMembers(_: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)));
}
