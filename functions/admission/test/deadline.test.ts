// The time that a review may take.
import { expect, test } from 'vitest';
import { untilAborted } from '#core/concurrency/timeout.ts';
import { createDeadline, toMillis } from '../deadline.ts';

test.each([
  ['5s', 4500],
  ['30s', 27_000],
  ['1s', 900],
  ['99s', 27_000],
  ['1h', 9000],
  ['', 9000],
  [undefined, 9000],
  ['5', 9000],
  ['-5s', 9000],
  ['5s; drop', 9000],
  ['0s', 9000],
])('with ?timeout=%s a review may take %i milliseconds: its answer must arrive in time', (text, millis) =>
  expect(toMillis(text)).toBe(millis),
);

test('a promise that is not fulfilled before the deadline rejects', async () => {
  let ring = () => {};
  const { signal } = createDeadline((_, callback) => {
    ring = callback;
    return () => {};
  }, '5s');
  expect(await untilAborted(signal, Promise.resolve('there'))).toBe('there');
  const late = untilAborted(signal, new Promise(() => {}));
  ring();
  await expect(late).rejects.toThrow('the review could not be answered in time');
});
