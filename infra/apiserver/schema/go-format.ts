// Go's way to print JSON values, as the API server's messages quote them.
import { isObject } from './json.ts';

/** `%q`: a Go string literal. */
export function quote(text: string): string {
  let quoted = '"';
  for (const char of text) quoted += escapes[char] ?? escapeControl(char);
  return `${quoted}"`;
}

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

function escapeControl(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(char)) return char;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** `%v` of a number decoded from JSON: integers plainly, others as Go's shortest form. */
export function number(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e21)
    return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
  const text = String(value);
  const match = /^(-?[\d.]+)e([+-])(\d+)$/.exec(text);
  return match ? `${match[1]}e${match[2]}${(match[3] ?? '').padStart(2, '0')}` : text;
}

/** A value as Go writes it in JSON: members in the order of their names, `<`, `>` and `&` escaped. */
export function goJson(value: unknown): string {
  if (typeof value === 'number') return number(value);
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  if (!isObject(value)) return text(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${text(key)}:${goJson(value[key])}`);
  return `{${members.join(',')}}`;
}

function text(value: unknown): string {
  const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value ?? null).replace(/[<>&\u2028\u2029]/g, escaped);
}
