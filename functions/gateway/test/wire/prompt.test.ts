import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { growthOf } from '../../wire/prompt/prompt.ts';

test('every number with an exponent grows by eighteen letters at most, each object by forty', () => {
  const part = fc.constantFrom('1e', '9E', 'e', '0', 'É', ' ', '-', ':', '{', '"1e{"', '"\\\\"', '"\\"1e{"');
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      const numbers = [...parts.join(',').matchAll(/[0-9]e/gi)].length;
      expect(growthOf(parts.join(','))).toBe(numbers * 18 + parts.filter((one) => one === '{').length * 40);
    }),
    { numRuns: runs(300) },
  );
});
