// Texts of findings: useful for their reader, however many there are.
import { expect, test } from 'vitest';
import { toSentences, toText } from '../rules/finding.ts';

const finding = (n: number) => ({ rule: 'Wrong', path: `spec.models[${n}]`, value: undefined, message: 'is wrong' });

test('each sentence is shown once, and a single one without a list', () => {
  expect(toText([finding(0), finding(0)])).toBe('spec.models[0]: is wrong');
  expect(toText([finding(0), finding(1)])).toBe('- spec.models[0]: is wrong\n- spec.models[1]: is wrong');
});

test('of thousands of findings twenty become sentences, and the rest is counted', () => {
  let made = 0;
  const findings = Array.from({ length: 16_384 }, (_, n) => ({
    ...finding(n),
    get message() {
      made += 1;
      return 'is wrong';
    },
  }));
  const sentences = toSentences(findings);
  expect(sentences).toHaveLength(21);
  expect(sentences.at(-1)).toBe('and 16364 more');
  expect(made).toBe(20);
});
