// Is a quantity recognized in whatever form the API server writes it?
import { expect, test } from 'vitest';
import { isSameQuantity } from './quantity.ts';

test.each([
  ['0.5', '500m', true],
  ['1000m', '1', true],
  ['1000m', 1, true],
  ['1024Mi', '1Gi', true],
  ['1.5Gi', '1536Mi', true],
  ['1000000', '1M', true],
  ['1500k', '1.5M', true],
  ['1', '1000', false],
  ['1Mi', '1M', false],
  ['100m', '100M', false],
  ['x', 'x', false],
  ['', '', false],
  [undefined, undefined, false],
])('%s and %s: %s', (left, right, same) => {
  expect(isSameQuantity(left, right)).toBe(same);
});
