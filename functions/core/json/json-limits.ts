// Limits of a JSON body, checked before it is parsed: the values of a short text may take gigabytes of memory.

/**
 * The maximum number of values in a body. Parsing them takes a tenth of a second; ten times as many take seconds and
 * gigabytes.
 */
export const MAX_VALUES = 500_000;

/**
 * The maximum bytes of a short text. A long text takes as much memory again, or more, in the engine's own memory. So
 * only its bytes are kept, and the text exists only while it is read.
 */
export const LONG_TEXT = 64 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/** Whether more than `MAX_VALUES` braces, brackets and commas are outside of texts. The bytes need not be JSON. */
export function hasTooManyValues(bytes: Uint8Array): boolean {
  return exceeds(bytes, ONE_PER_VALUE, MAX_VALUES);
}

/**
 * Like `hasTooManyValues`, for replies of providers. Objects, lists and members count in full, elements a tenth: lists
 * of numbers are cheap to parse, and a reply with embeddings has millions of numbers.
 */
export function isTooCostly(bytes: Uint8Array): boolean {
  return exceeds(bytes, TEN_PER_MEMBER, 10 * MAX_VALUES);
}

/** The weight of each byte outside of texts. */
type Weights = Uint8Array;

const ONE_PER_VALUE = weightsOf({ ',': 1, '{': 1, '[': 1 });
const TEN_PER_MEMBER = weightsOf({ ',': 1, '{': 10, '[': 10, ':': 10 });

function weightsOf(weights: Readonly<Record<string, number>>): Weights {
  const table = new Uint8Array(256);
  for (const [character, weight] of Object.entries(weights)) table[character.charCodeAt(0)] = weight;
  return table;
}

function exceeds(bytes: Uint8Array, weights: Weights, max: number): boolean {
  // No byte weighs more than ten.
  if (bytes.length <= MAX_VALUES) return false;
  let sum = 0;
  let inText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) inText = !inText;
    else if (inText) at += byte === BACKSLASH ? 1 : 0;
    else sum += weights[byte] ?? 0;
    if (sum > max) return true;
  }
  return false;
}

/** Counts of a JSON text's values. */
export interface JsonSize {
  /** Braces, brackets and commas: each begins a value. */
  readonly values: number;
  /** Objects, lists and members of objects: each takes the time of many letters, numbers or short texts. */
  readonly parts: number;
  /** Members of the outermost object, repeated ones included. */
  readonly members: number;
  /** Commas between elements or members. */
  readonly commas: number;
  /** The maximum of bytes that the text grows by if it becomes part of another text: its quotes and backslashes. */
  readonly escapes: number;
}

/** Counts outside of texts, except for `escapes`. The bytes need not be JSON. */
export function sizeOfJson(bytes: Uint8Array): JsonSize {
  const size = { values: 0, parts: 0, members: 0, commas: 0, escapes: 0 };
  let inText = false;
  let depth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      inText = !inText;
      size.escapes += 1;
    } else if (inText) {
      if (byte !== BACKSLASH) continue;
      // The escaped letter may be a quote or a backslash, too.
      at += 1;
      size.escapes += 2;
    } else if (byte === COMMA) {
      size.values += 1;
      size.commas += 1;
    } else if (byte === COLON) {
      size.parts += 1;
      if (depth === 1) size.members += 1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      size.values += 1;
      size.parts += 1;
      depth += 1;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
  }
  return size;
}
