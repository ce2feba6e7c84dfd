// Removal of credentials from a provider's text, however JSON spells them: clients never see one.
import { member, parseJson } from '#core/json/json.ts';
import type { Address, WireError } from '../codec.ts';

/** The minimum length of a credential; a shorter value may be a word of any text. */
const MIN_SECRET = 8;

/** A provider's text without the model entry's credentials. */
export function withoutSecrets(providerText: string, { credentials }: Pick<Address, 'credentials'>): string {
  const secrets = Object.values(credentials).filter((value) => value.length >= MIN_SECRET);
  if (!providerText.includes('\\')) return secrets.reduce((text, secret) => text.replaceAll(secret, '…'), providerText);
  return secrets.reduce(withoutSpellings, providerText);
}

/** An error of a provider without the model entry's credentials in its type, code and parameter. */
export function withoutSecretNames(error: WireError, target: Pick<Address, 'credentials'>): WireError {
  const shown = (name: string | undefined) => (name === undefined ? undefined : withoutSecrets(name, target));
  return { ...error, type: shown(error.type), code: shown(error.code), param: shown(error.param) };
}

/** The maximum length of a searched text: each letter takes several bytes of memory. */
const MAX_SEARCHED = 64 * 1024;
const TOO_LONG = { code: 'server_error', message: 'The provider sent an error that is too long to show.' };

/**
 * A failed response without the model entry's credentials; the same object if it has no error, or no credentials. Only
 * the error of a long response is searched: the rest repeats the request and the answer.
 */
export function withoutSecretsIn(response: unknown, redact: (text: string) => string): unknown {
  const error = member(response, 'error') ?? undefined;
  if (error === undefined) return response;
  const whole = redactedValue(response, redact);
  return whole === undefined ? { ...Object(response), error: redactedValue(error, redact) ?? TOO_LONG } : whole;
}

/** The value without credentials: the same value if it has none, undefined if it is too long to be searched. */
function redactedValue(value: unknown, redact: (text: string) => string): unknown {
  const text = JSON.stringify(value);
  if (text.length > MAX_SEARCHED) return undefined;
  const redacted = redact(text);
  return redacted === text ? value : parseJson(redacted);
}

/** A text without its escapes, and for each letter its end in the escaped text. */
interface UnescapedText {
  readonly text: string;
  readonly ends: Uint32Array;
}

/** A text without a secret, whose letters may be escaped, also twice (JSON in JSON). */
function withoutSpellings(providerText: string, secret: string): string {
  const letters = secret.replaceAll('\\', '');
  if (letters.length < MIN_SECRET) return providerText.replaceAll(secret, '…');
  const { text, ends } = decode(providerText);
  let clean = '';
  let from = 0;
  for (let at = text.indexOf(letters); at !== -1; at = text.indexOf(letters, at + letters.length)) {
    clean += `${providerText.slice(from, ends[at])}…`;
    from = ends[at + letters.length] ?? providerText.length;
  }
  return clean + providerText.slice(from);
}

const ESCAPES = /\\+(?:u([0-9a-f]{4}))?/gi;

/** The text without backslashes, also without escaped ones. */
function decode(providerText: string): UnescapedText {
  const ends = new Uint32Array(providerText.length + 1);
  let text = '';
  let from = 0;
  const add = (plain: string) => {
    for (let at = 1; at <= plain.length; at += 1) ends[text.length + at] = from + at;
    text += plain;
  };
  for (const { 0: escaped, 1: code, index } of providerText.matchAll(ESCAPES)) {
    add(providerText.slice(from, index));
    from = index + escaped.length;
    const letter = code === undefined ? '\\' : String.fromCharCode(Number.parseInt(code, 16));
    if (letter === '\\') continue;
    text += letter;
    ends[text.length] = from;
  }
  add(providerText.slice(from));
  return { text, ends };
}
