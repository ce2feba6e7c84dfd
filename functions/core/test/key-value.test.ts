import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { checksum, isKeyValue, toKeyValue } from '../keys/key-value.ts';

const random = fc.uint8Array({ minLength: 32, maxLength: 32 });

test('a key is sk- and 49 letters and digits, whatever the random bytes are', () => {
  fc.assert(
    fc.property(random, (bytes) => {
      const value = toKeyValue(bytes);
      expect(value).toMatch(/^sk-[0-9A-Za-z]{49}$/);
      expect(isKeyValue(value)).toBe(true);
    }),
  );
});

test.each([0, 255])('32 bytes of %s make a key of the same form', (byte) => {
  const value = toKeyValue(new Uint8Array(32).fill(byte));
  expect(value).toMatch(/^sk-[0-9A-Za-z]{49}$/);
  expect(isKeyValue(value)).toBe(true);
});

test('all 256 bits are in the key: other bytes, another key', () => {
  fc.assert(
    fc.property(random, fc.nat(255), (bytes, bit) => {
      const other = Uint8Array.from(bytes);
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(toKeyValue(other)).not.toBe(toKeyValue(bytes));
    }),
  );
});

test('a mistyped letter, or two swapped letters, are always detected', () => {
  const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  fc.assert(
    fc.property(random, fc.nat(48), fc.nat(61), (bytes, position, letter) => {
      const value = toKeyValue(bytes);
      const at = 3 + position;
      const typed = value.slice(0, at) + letters.charAt(letter) + value.slice(at + 1);
      expect(isKeyValue(typed)).toBe(typed === value);
      const swapped = value.slice(0, at) + value.charAt(at + 1) + value.charAt(at) + value.slice(at + 2);
      expect(isKeyValue(swapped)).toBe(swapped === value);
    }),
    { numRuns: 500 },
  );
});

test('the checksum is CRC-32, as other programs compute it', () => {
  // The check value of the algorithm: 0xCBF43926.
  expect(checksum('123456789')).toBe('3jZRME');
});

test.each([
  '',
  'sk-',
  'sk-short',
  `sk-${'0'.repeat(49)}`,
  ` ${toKeyValue(new Uint8Array(32))}`,
  `${toKeyValue(new Uint8Array(32))}0`,
])('%j is no key value', (text) => {
  expect(isKeyValue(text)).toBe(false);
});

test.each([0, 31, 33])('%s random bytes are a bug and throw', (length) => {
  expect(() => toKeyValue(new Uint8Array(length))).toThrow('32 random bytes');
});
