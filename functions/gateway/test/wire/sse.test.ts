import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { concat } from '#core/json/bytes.ts';
import { runs } from '../../../../test/support/runs.ts';
import { dataOf, SseSplitter } from '../../wire/streams/sse.ts';

const encoder = new TextEncoder();

/** Events with any data, any line ends, fields we do not know, and characters of several bytes. */
const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
const field = fc.oneof(
  fc
    .string({ unit: fc.constantFrom('a', '"', '{', 'é', '漢', '😀', ' ') })
    .map((text) => ({ line: `data: ${text}`, data: text })),
  fc.constantFrom(': comment', 'event: message', 'id: 7', 'retry: 10').map((line) => ({ line, data: undefined })),
  fc.constant({ line: 'data:tight', data: 'tight' }),
);
const event = fc.tuple(fc.array(field, { minLength: 1, maxLength: 3 }), lineEnd).map(([fields, end]) => {
  const data = fields.flatMap((one) => (one.data === undefined ? [] : [one.data]));
  return {
    text: fields.map(({ line }) => line + end).join('') + end,
    data: data.length === 0 ? undefined : data.join('\n'),
  };
});
const cuts = fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 200 });

function play(bytes: Uint8Array, sizes: ReadonlyArray<number>): Uint8Array[] {
  const splitter = new SseSplitter();
  const events: Uint8Array[] = [];
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const size = (sizes[turn % sizes.length] ?? 0) + (turn % sizes.length === 0 ? 1 : 0);
    events.push(...splitter.push(bytes.subarray(at, at + size)));
    at += size;
  }
  return [...events, ...splitter.end()];
}

test('events are the same whatever the packets, also cut in the middle of a character', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 6 }), cuts, (events, sizes) => {
      const bytes = encoder.encode(events.map(({ text }) => text).join(''));
      const played = play(bytes, sizes).map(dataOf);
      expect(played.filter((data) => data !== undefined)).toEqual(
        events.flatMap(({ data }) => (data === undefined ? [] : [data])),
      );
    }),
    { numRuns: runs(500) },
  );
});

test('no byte is lost or moved, whatever the bytes are; an event that is cut gets its blank line', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.constant(encoder.encode('\r\n\r\n\n\ndata: x\r\r\n'))),
      cuts,
      (bytes, sizes) => {
        const passed = concat(play(bytes, sizes));
        expect(passed.subarray(0, bytes.length)).toEqual(bytes);
        expect(['', '\n\n']).toContain(new TextDecoder().decode(passed.subarray(bytes.length)));
      },
    ),
    { numRuns: runs(500) },
  );
});

test.each([
  ['\n', ['data: a\n', '\n']],
  ['\r', ['data: a\r', '\r']],
  ['\r\n', ['data: a\r\n\r', '\n']],
])('an event is passed on as soon as its blank line has arrived, with lines that end in %j', (_, [first, second]) => {
  const splitter = new SseSplitter();
  expect(splitter.push(encoder.encode(first))).toEqual([]);
  expect(splitter.push(encoder.encode(second))).toEqual([encoder.encode(`${first}${second}`)]);
  expect(dataOf(encoder.encode(`${first}${second}`))).toBe('a');
  expect(splitter.end()).toEqual([]);
});

test('a last event without its blank line still counts', () => {
  const splitter = new SseSplitter();
  expect(splitter.push(encoder.encode('data: [DONE]'))).toEqual([]);
  expect(splitter.end().map(dataOf)).toEqual(['[DONE]']);
  expect(splitter.end()).toEqual([]);
});

test('a byte order mark before a line of data does not hide the line, whatever is before it', () => {
  for (const before of ['', '\n', ': a comment\n']) {
    expect(dataOf(encoder.encode(`${before}\ufeffdata: a\n\n`))).toBe('a');
  }
});

test('the data of an event are its data lines, joined, however it is written', () => {
  const part = fc.constantFrom('data: ', 'data:', 'data', 'event:', 'event', '\n', '\n\n', '\r', '\r\n', 'x', ' ');
  fc.assert(
    fc.property(fc.array(part, { maxLength: 9 }), (parts) => {
      const text = parts.join('');
      const lines = text.split(/\r\n|\r|\n/).filter((line) => /^data(:|$)/.test(line));
      const data = lines.map((line) => line.replace(/^data:? ?/, '')).join('\n');
      expect(dataOf(encoder.encode(text))).toBe(lines.length === 0 ? undefined : data);
    }),
    { numRuns: runs(5000) },
  );
});
