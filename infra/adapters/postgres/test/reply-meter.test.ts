// Messages that a database may send to one statement: by what they are, by their number, and by their bytes.
import { expect, test } from 'vitest';
import { message } from '../../../../test/hostile/postgres.ts';
import { createReplyMeter, MAX_ANSWER } from '../reply-meter.ts';

const READY = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);

/** The meter of a connection that is ready and has sent a statement. */
function asked() {
  const meter = createReplyMeter(() => undefined);
  meter.read(READY);
  meter.begin(MAX_ANSWER);
  return meter;
}

/** How many of these messages pass, of 300,000. */
function passing(meter: ReturnType<typeof createReplyMeter>, each: Buffer): number {
  for (let count = 0; count < 300_000; count += 1) {
    try {
      meter.read(each);
    } catch (error) {
      expect(String(error)).toMatch(
        /^AnswerRefused: (sends|answers with) .*: check that the Secret names the right server$/,
      );
      return count;
    }
  }
  return Number.POSITIVE_INFINITY;
}

const EMPTY = Buffer.alloc(1);

test.each([
  ['ends of commands', message('C', EMPTY), 1000],
  ['columns', message('T', Buffer.alloc(2)), 1000],
  ['notices', message('N', EMPTY), 1000],
  ['errors', message('E', EMPTY), 1000],
  ['parameters', message('S', Buffer.alloc(2)), 1000],
  ['answers that it is ready', message('Z', Buffer.from('I')), 1],
  ['rows', message('D', Buffer.alloc(2)), 250_000],
  ['parts of rows', message('s'), 0],
  ['copies', message('G', Buffer.alloc(3)), 0],
  ['texts of nothing', message('I'), 0],
  ['notifications', message('A', Buffer.alloc(6)), 0],
  ['keys', message('K', Buffer.alloc(8)), 0],
])('a statement is answered with few %s', (_, each, max) => {
  expect(passing(asked(), each)).toBeLessThanOrEqual(max);
});

test.each([
  ['parameters', message('S', Buffer.alloc(2))],
  ['keys', message('K', Buffer.alloc(8))],
  ['notices', message('N', EMPTY)],
])('a connection begins with few %s', (_, each) => {
  expect(
    passing(
      createReplyMeter(() => undefined),
      each,
    ),
  ).toBeLessThanOrEqual(1000);
});

test('a statement that failed is ready after its error, also when the next was asked before that', () => {
  const meter = asked();
  meter.read(message('E', EMPTY));
  meter.end();
  meter.begin(MAX_ANSWER);
  meter.read(message('Z', Buffer.from('I')));
  meter.read(message('C', EMPTY));
  meter.read(message('Z', Buffer.from('I')));
  meter.end();
  // An administrator ends the connection, or changes a parameter.
  meter.read(message('S', Buffer.alloc(2)));
  meter.read(message('E', EMPTY));
  expect(passing(meter, message('C', EMPTY))).toBe(0);
});

test.each([
  ['a character in a byte', 'a', 1],
  ['characters of two bytes on the way', 'ä', 1],
  ['one character that takes two bytes of each other', `€${'a'.repeat(999)}`, 2],
])('what is kept of a text with %s is not less than V8 keeps', (_, piece, perCharacter) => {
  const [meter, text] = [asked(), piece.repeat(1_000_000 / piece.length)];
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(6);
  head.writeInt16BE(1);
  head.writeInt32BE(bytes.length, 2);
  meter.read(message('D', Buffer.concat([head, bytes])));
  expect(meter.text(text)).toBe(text);
  expect(meter.end().kept).toBeGreaterThanOrEqual(text.length * perCharacter);
});
