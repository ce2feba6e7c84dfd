import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { growthOf } from '../../wire/prompt/prompt.ts';

test('every number with an exponent grows by eighteen letters at most, and words do not', () => {
  const text = fc.array(fc.constantFrom('1e', '9E', 'e', '0', 'É', ' ', '-', ':'), { maxLength: 30 });
  fc.assert(
    fc.property(text, (parts) => {
      expect(growthOf(parts.join(''))).toBe([...parts.join('').matchAll(/[0-9]e/gi)].length * 18);
    }),
    { numRuns: runs(300) },
  );
});
