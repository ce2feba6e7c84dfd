// How long may an answer take?
import { expect, test } from 'vitest';
import { createCountdown, toTimeout } from './deadline.ts';

test.each([
  ['5s', 5000],
  ['1m0s', 30_000],
  ['500ms', 500],
  ['1.5s', 1500],
  ['30s', 30_000],
  ['1h', 10_000],
  ['', 10_000],
  [null, 10_000],
  ['5', 10_000],
  ['-5s', 10_000],
  ['5s; drop', 10_000],
  ['0s', 1],
])('?timeout=%s is %i milliseconds', (text, millis) => expect(toTimeout(text)).toBe(millis));

test.each([
  [5000, 4500],
  [30_000, 27_000],
  [500, 400],
  [100, 50],
])('of %i milliseconds judging may take %i: the answer has to arrive too', async (timeout, millis) => {
  const asked: number[] = [];
  const countdown = createCountdown(
    (after, callback) => {
      asked.push(after);
      callback();
      return () => {};
    },
    () => timeout,
  );
  expect(asked).toEqual([]);
  await countdown.late();
  await countdown.late();
  expect(asked).toEqual([millis]);
});
