import { expect, test } from 'vitest';
import { fingerprint } from './fingerprint.ts';

test('the same things have one name in any order, and one thing more or less gives another', () => {
  expect(fingerprint(['b', 'a'])).toBe(fingerprint(['a', 'b']));
  expect(fingerprint(['a', 'b'])).toMatch(/^[0-9a-f]{10}$/);
  const names = new Set([[], ['a'], ['a', 'b'], ['ab'], ['a', 'b', 'c'], ['a', 'c']].map(fingerprint));
  expect(names.size).toBe(6);
});
