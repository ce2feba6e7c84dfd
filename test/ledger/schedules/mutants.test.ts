import { expect, test } from 'vitest';
import { broken, MUTANTS } from './mutants.ts';

test.each(MUTANTS)('$name: its line is in the code, so that the search of CI can break it', ({ edits }) => {
  expect(broken(edits).size).toBeGreaterThan(0);
});
