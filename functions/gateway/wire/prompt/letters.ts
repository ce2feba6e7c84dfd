// Letters of a prompt, as tokenizers read them: the growth of the text, and the approximate tokens of its letters.
import type { Random } from '#core/ports/platform.ts';
import type { EncodedText } from '../json/json-splice.ts';
import { bytesIn } from './prompt.ts';

/** Bytes of an escaped letter, such as `\uFDFA`. */
const ESCAPED = 6;

/**
 * Bytes by which the text may grow if a tokenizer normalizes it first (NFKC: Anthropic's, and those of many embedding
 * models). One letter of three bytes may become eighteen letters.
 */
export function normalizedGrowthOf({ text, bytes, isAscii }: EncodedText): number {
  // Nearly all texts have no escaped letters.
  let growth = text.includes('\\u') ? escapedGrowthOf(bytes) : 0;
  if (isAscii) return growth;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit <= LAST_ASCII) continue;
    if (!isHighSurrogate(unit)) growth += Math.max(0, normalizedBytes(unit) - bytesOf(unit));
    // The maximum growth of a letter of four bytes; few of them grow.
    else if (mayGrow(text.codePointAt(at) ?? 0)) growth += MAX_OF_PAIR;
  }
  return growth;
}

/**
 * The growth of the escaped letters. An escaped backslash before the `u` counts too: arguments of a call are JSON in
 * JSON. A loop over bytes, because a client may send millions of escapes.
 */
function escapedGrowthOf(bytes: Uint8Array): number {
  let growth = 0;
  for (let at = 0; at + ESCAPED <= bytes.length; at += 1) {
    if (bytes[at] !== BACKSLASH || bytes[at + 1] !== LETTER_U) continue;
    let unit = 0;
    for (let digit = at + 2; digit < at + ESCAPED && unit >= 0; digit += 1) {
      const value = digitOf(bytes[digit] ?? 0);
      unit = value === -1 ? -1 : unit * 16 + value;
    }
    if (unit === -1) continue;
    growth += Math.max(0, normalizedBytes(unit) - ESCAPED);
    at += ESCAPED - 1;
  }
  return growth;
}

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;

/** The value of a hexadecimal digit; -1: it is none. */
function digitOf(unit: number): number {
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30;
  const letter = unit | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

const LAST_ASCII = 0x7f;
const MAX_OF_PAIR = 8;
const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;

/** Letters of four bytes that grow: signs of music, letters and words in brackets, variants of Chinese signs. */
const GROWING = [
  [0x1d15e, 0x1d1c0],
  [0x1f100, 0x1f26f],
  [0x2f800, 0x2fa1d],
] as const;
const mayGrow = (point: number): boolean => GROWING.some(([first, last]) => point >= first && point <= last);

function bytesOf(unit: number): number {
  if (unit <= LAST_ASCII) return 1;
  // Each half of a surrogate pair has two bytes.
  return unit < 0x800 || isSurrogate(unit) ? 2 : 3;
}

/** Bytes of each letter in its normal form; zero: not computed yet. */
const NORMALIZED = new Uint8Array(2 ** 16);

function normalizedBytes(unit: number): number {
  const known = NORMALIZED[unit] ?? 0;
  if (known > 0) return known;
  const bytes = bytesIn(String.fromCharCode(unit).normalize('NFKC'));
  NORMALIZED[unit] = bytes;
  return bytes;
}

/**
 * Tokens of a byte of prose in Latin letters, with a reserve; and the maximum that still counts as prose, with
 * capitals, numbers and signs of JSON.
 */
const USUAL = 1 / 3;
const MAX_USUAL = 0.45;
/** The letters of one sample of a long text, and the number of samples. */
const SAMPLE = 32;
const SAMPLES = 64;

/**
 * The approximate tokens of a byte of the text, at least those of prose. Of a long text only samples are read, at
 * places that no client knows.
 */
export function tokensPerByte(text: string, random: Random): number {
  const step = Math.max(SAMPLE, text.length / SAMPLES);
  const first = step === SAMPLE ? 0 : ((random(1)[0] ?? 0) / 256) * (step - SAMPLE);
  let bytes = 0;
  let tokens = 0;
  for (let from = first; from < text.length; from += step) {
    const end = Math.min(text.length, Math.floor(from) + SAMPLE);
    for (let at = Math.floor(from); at < end; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit <= LAST_ASCII) {
        bytes += 1;
        tokens += ASCII_SHARES[unit] ?? RARE;
        continue;
      }
      const size = bytesOf(unit);
      bytes += size;
      tokens += size * shareOf(unit);
    }
  }
  const found = tokens / Math.max(1, bytes);
  return found <= MAX_USUAL ? USUAL : found;
}

/**
 * Tokens of a byte of these letters, in the tokenizers of OpenAI's models. Random texts contain capitals and digits.
 */
const PUNCTUATION = 1 / 2;
const DIGITS = 2 / 3;
const CAPITALS = 3 / 4;
const RARE = 1;
/** Tokens of a byte of common scripts, and of quotation marks and dashes. */
const SCRIPTS = [
  [0x00c0, 0x017f, 1 / 2],
  [0x0370, 0x03ff, 1 / 2],
  [0x0400, 0x045f, 1 / 3],
  [0x05d0, 0x05ea, 1 / 2],
  [0x0620, 0x064a, 1 / 2],
  [0x0900, 0x097f, 1 / 2],
  [0x0e00, 0x0e5b, 1 / 2],
  [0x2010, 0x2027, 1 / 2],
  [0x3001, 0x30ff, 1 / 3],
  [0x4e00, 0x9fff, 1 / 3],
  [0xac00, 0xd7a3, 1 / 3],
] as const;

function shareOf(unit: number): number {
  if (unit > LAST_ASCII) return SCRIPTS.find(([first, last]) => unit >= first && unit <= last)?.[2] ?? RARE;
  if ((unit >= 0x61 && unit <= 0x7a) || unit <= 0x20) return USUAL;
  if (unit >= 0x41 && unit <= 0x5a) return CAPITALS;
  return unit >= 0x30 && unit <= 0x39 ? DIGITS : PUNCTUATION;
}

/** The shares of the ASCII letters. A table, because every request is read. */
const ASCII_SHARES = Float64Array.from({ length: LAST_ASCII + 1 }, (_, unit) => shareOf(unit));
