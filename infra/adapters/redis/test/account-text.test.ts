import { expect, test } from 'vitest';
import { fromText, toNano } from '../account-text.ts';

test.each(['0', '-1', '9'.repeat(40)])('the amount %s is read exactly', (text) => {
  expect(`${toNano(text)}`).toBe(text);
});

test.each(['', '-', '1.5', '0x10', ' 1', '1e3', '9'.repeat(41), '9'.repeat(1_000_000)])(
  'a reply with an amount that no operator wrote is refused, before it is computed with (%#)',
  (text) => {
    expect(() => toNano(text)).toThrow('not an amount');
    expect(() => fromText(JSON.stringify({ spent: text }))).toThrow('not an amount');
    expect(() => fromText(JSON.stringify({ counters: [['0:1 scope a 1', `${text} 1`, false]] }))).toThrow();
  },
);
