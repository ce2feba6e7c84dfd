// Credentials in a provider's words, however JSON spells them: clients never see one.
import { member, parseJson } from '#core/json/json.ts';
import type { Address } from '../codec.ts';

/** Shorter values may be words of any text. */
const MIN_SECRET = 8;

/** A provider's words without our credentials. */
export function withoutSecrets(words: string, { credentials }: Pick<Address, 'credentials'>): string {
  const secrets = Object.values(credentials).filter((value) => value.length >= MIN_SECRET);
  if (!words.includes('\\')) return secrets.reduce((text, secret) => text.replaceAll(secret, '…'), words);
  return secrets.reduce(withoutSpellings, words);
}

/** Longer texts are not searched whole: each letter takes several bytes of memory. */
const MAX_SEARCHED = 64 * 1024;
const TOO_LONG = { code: 'server_error', message: 'The provider sent an error that is too long to show.' };

/**
 * A failed response without our credentials; the same object where it has no error, or none of them. Of a long one only
 * the error is searched: the rest repeats the request and the answer.
 */
export function withoutSecretsIn(response: unknown, redact: (words: string) => string): unknown {
  const error = member(response, 'error') ?? undefined;
  if (error === undefined) return response;
  const whole = redactedValue(response, redact);
  return whole === undefined ? { ...Object(response), error: redactedValue(error, redact) ?? TOO_LONG } : whole;
}

/** The same value where it has no credentials; undefined where it is too long to be searched. */
function redactedValue(value: unknown, redact: (words: string) => string): unknown {
  const text = JSON.stringify(value);
  if (text.length > MAX_SEARCHED) return undefined;
  const redacted = redact(text);
  return redacted === text ? value : parseJson(redacted);
}

/** A text without its escapes, and for each of its letters where it ends in the text as it was. */
interface UnescapedText {
  readonly text: string;
  readonly ends: Uint32Array;
}

/** Words without a secret, each letter as it is or escaped, also in JSON that is a text in JSON: more backslashes. */
function withoutSpellings(words: string, secret: string): string {
  const letters = secret.replaceAll('\\', '');
  if (letters.length < MIN_SECRET) return words.replaceAll(secret, '…');
  const { text, ends } = decode(words);
  let clean = '';
  let from = 0;
  for (let at = text.indexOf(letters); at !== -1; at = text.indexOf(letters, at + letters.length)) {
    clean += `${words.slice(from, ends[at])}…`;
    from = ends[at + letters.length] ?? words.length;
  }
  return clean + words.slice(from);
}

const ESCAPES = /\\+(?:u([0-9a-f]{4}))?/gi;

/** Backslashes go, also those that are escaped themselves. */
function decode(words: string): UnescapedText {
  const ends = new Uint32Array(words.length + 1);
  let text = '';
  let from = 0;
  const add = (plain: string) => {
    for (let at = 1; at <= plain.length; at += 1) ends[text.length + at] = from + at;
    text += plain;
  };
  for (const { 0: escaped, 1: code, index } of words.matchAll(ESCAPES)) {
    add(words.slice(from, index));
    from = index + escaped.length;
    const letter = code === undefined ? '\\' : String.fromCharCode(Number.parseInt(code, 16));
    if (letter === '\\') continue;
    text += letter;
    ends[text.length] = from;
  }
  add(words.slice(from));
  return { text, ends };
}
