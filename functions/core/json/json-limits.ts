// Limits of a JSON body, checked before it is parsed: a small text may hold values for gigabytes.

/**
 * The maximum number of values: parsing them takes a tenth of a second; ten times as many take seconds and gigabytes,
 * in any body.
 */
export const MAX_VALUES = 500_000;

/**
 * Bytes from which on a text is long: it is kept in the engine's own memory, where it takes as much room again or more,
 * only while it is read.
 */
export const LONG_TEXT = 64 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const COMMA = 0x2c;

/** Counts what begins a value, outside of texts: a brace, a bracket, a comma. The bytes need not be JSON. */
export function hasTooManyValues(bytes: Uint8Array): boolean {
  if (bytes.length <= MAX_VALUES) return false;
  let values = 0;
  let inText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) inText = !inText;
    else if (inText) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) values += 1;
    if (values > MAX_VALUES) return true;
  }
  return false;
}
