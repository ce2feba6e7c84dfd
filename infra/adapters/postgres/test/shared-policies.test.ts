import { expect, test } from 'vitest';
import { createSharing } from '../shared-policies.ts';

const spec = (name: string) => ({
  name,
  models: ['small', 'free'],
  budgetDuration: '30d',
  blocked: false,
  none: null,
});

test('what is shared says the same as before', () => {
  const share = createSharing();
  for (const name of ['a', 'b', 'c']) expect(share(spec(name))).toEqual(spec(name));
  for (const value of [undefined, null, 7, 'text', true]) expect(share(value)).toBe(value);
});

test('equal parts of different objects are one', () => {
  const share = createSharing();
  const [one, other] = [share(spec('a')), share(spec('b'))];
  expect(one.models).toBe(other.models);
  expect(share({ models: ['small'] }).models).not.toBe(one.models);
});

test('however much differs, it remembers a bounded number of parts and still answers what it was given', () => {
  const share = createSharing();
  for (let index = 0; index < 20_000; index += 1) expect(share({ part: [index] }).part).toEqual([index]);
  expect(share({ part: [0] }).part).toBe(share({ part: [0] }).part);
  expect(share({ part: [19_999] }).part).not.toBe(share({ part: [19_999] }).part);
});

test('large parts take the memory of few', () => {
  const share = createSharing();
  const large = (index: number) => `${index}`.padEnd(100_000, 'x');
  const parts = Array.from({ length: 200 }, (_, index) => share({ part: [large(index)] }).part);
  const isRemembered = (index: number) => share({ part: [large(index)] }).part === parts[index];
  expect(parts.filter((_, index) => isRemembered(index)).length).toBeLessThan(40);
});
