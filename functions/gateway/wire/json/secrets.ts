// Credentials in a provider's words, however JSON spells them: clients never see one.
import { toUtf8 } from '#core/json/bytes.ts';
import { member } from '#core/json/json.ts';
import type { Address } from '../codec.ts';

/** Shorter values may be words of any text. */
const MIN_SECRET = 8;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A provider's words without our credentials. */
export function withoutSecrets(words: string, { credentials }: Pick<Address, 'credentials'>): string {
  const secrets = Object.values(credentials).filter((value) => value.length >= MIN_SECRET);
  const isEscaped = words.includes('\\');
  return secrets.reduce((text, secret) => text.replaceAll(isEscaped ? spellingsOf(secret) : secret, '…'), words);
}

/**
 * A failed response, or an event that tells of it, without our credentials; the same bytes where it tells of no error.
 */
export function withoutSecretsIn(bytes: Uint8Array, response: unknown, redact: (words: string) => string): Uint8Array {
  if ((member(response, 'error') ?? undefined) === undefined) return bytes;
  const text = decoder.decode(bytes);
  const redacted = redact(text);
  return redacted === text ? bytes : toUtf8(redacted);
}

/** The secret, each letter as it is or escaped, also in JSON that is a text in JSON: more backslashes. */
function spellingsOf(secret: string): RegExp {
  const units = secret.split('').map((unit) => {
    const code = unit.charCodeAt(0).toString(16).padStart(4, '0');
    const anyCase = code.replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
    return `(?:\\\\{0,8}\\u${code}|\\\\{1,8}u${anyCase})`;
  });
  return new RegExp(units.join(''), 'g');
}
