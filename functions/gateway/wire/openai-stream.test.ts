import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { concat } from '../members.ts';
import type { Piece } from './dialect.ts';
import { toPiece } from './openai-chunk.ts';
import { createReader } from './openai-stream.ts';
import { createSplitter } from './sse.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What models say, and what looks like something else. */
const said = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.string({ unit: fc.constantFrom('a', '"', '\\', 'é', '漢', '😀', '\u2028', '\n', '\u0000', '\ud800', '/') }),
  fc.constantFrom(
    '',
    '"usage":{"prompt_tokens":1}',
    '[DONE]',
    'data: [DONE]\n\n',
    '"error":',
    '"finish_reason":"stop"',
  ),
);
/** JSON of a text, as different providers write it. */
const text = fc.tuple(said, fc.constantFrom('short', 'ascii', 'solidus')).map(([value, how]) => {
  const json = JSON.stringify(value);
  if (how === 'solidus') return json.replaceAll('/', '\\/');
  const toEscape = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return how === 'ascii' ? json.replaceAll(/[^\x20-\x7e]/g, toEscape) : json;
});
/** Now and then a text that no JSON allows. */
const anyText = fc.oneof(
  { weight: 20, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom('"\\x"', '"\\u12g4"', '"\t"', '"\\u00', '5', 'null', '["a"]', '{"a":"b"}') },
);

/** Events of one kind differ in their texts only. `T` is where a text stands. */
const KINDS = [
  '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":T},"finish_reason":null}]}',
  '{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":T},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":T}',
  '{"choices":[{"delta":{"content":T}}],"p":T}',
  '{ "id": T, "choices": [ {"index": 0, "delta": {"content": T}, "finish_reason": null} ] }',
  '{"id":"c","choices":[{"index": 1, "delta": {"reasoning_content" : T, "content":null}, "finish_reason": null}], "usage":null }',
  '{"choices":[{"index":0,"delta":{"content":T,"reasoning":T,"refusal":T,"other":T},"finish_reason":null}],"error":null}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":T,"type":"function","function":{"name":T,"arguments":T}}]}}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":T}},{"index":1,"function":{"arguments":T}}]}}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":{"function":{"arguments":T}}}}]}',
  '{"choices":[{"index":0,"delta":{"function_call":{"name":T,"arguments":"fixed"},"content":T}}]}',
  '{"choices":[{"index":0,"delta":[{"content":T}]}]}',
  '{"choices":{"index":0,"delta":{"content":T}}}',
  '{"choices":[{"index":0,"delta":{"content":T}},{"index":1,"delta":{"content":T},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"content":T,"content":T}}]}',
  '{"choices":[{"index":0,"delta":{"content":T,"cont\\u0065nt":T}}]}',
  '{"choices":[{"index":0,"delta":{"cont\\u0065nt":T},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"content":T},"delta":{"content":T}}]}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"choices":[{"index":0,"delta":{"content":T}}]}',
  '{"choices":[{"index":0,"delta":{"content":T},"finish_reason":T}]}',
  '{"choices":[{"index":T,"delta":{"content":T},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"usage":T,"x_groq":T}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"error":T}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"us\\u0061ge":{"prompt_tokens":7,"completion_tokens":3}}',
  '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3},"id":T}',
  '{"choices":[],"usage":null,"prompt_filter_results":T}',
  '{"choices":[],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":3}},"id":T}',
  '{"error":{"message":T}}',
  '{"choices":[{"index":0,"delta":{"content":T}}]',
  '[{"choices":[{"delta":{"content":T}}]}]',
  '[DONE]',
  ' [DONE] ',
];
const texts = fc.array(anyText, { minLength: 3, maxLength: 3 });
const filled = (pattern: string) =>
  texts.map((three) => three.reduce((json, one) => json.replace('T', () => one.replaceAll('T', 't')), pattern));
const frame = fc.oneof(
  { weight: 12, arbitrary: fc.constant((json: string, end: string) => `data: ${json}${end}${end}`) },
  fc.constantFrom(
    (json: string, end: string) => `data:${json}${end}${end}`,
    (json: string, end: string) => `data:   ${json} ${end}${end}`,
    (json: string, end: string) => `: comment${end}data: ${json}${end}${end}`,
    (json: string, end: string) => `data: ${json}${end}id: 5${end}${end}`,
    (json: string, end: string) => `event: chunk${end}data: ${json}${end}${end}`,
    (json: string, end: string) => `data: ${json.replace(',', `,${end}data: `)}${end}${end}`,
    (json: string, end: string) => `data: ${json}${end}${end}${end}`,
    (json: string, end: string) => `\ufeffdata: ${json}${end}${end}`,
    (_: string, end: string) => `: waiting${end}${end}`,
  ),
);
const lineEnd = fc.oneof(
  { weight: 6, arbitrary: fc.constant('\n') },
  { weight: 3, arbitrary: fc.constant('\r\n') },
  { weight: 1, arbitrary: fc.constant('\r') },
);
/** Few kinds in a stream, mostly written and ended in the same way. */
const stream = fc
  .tuple(fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 3 }), lineEnd)
  .chain(([kinds, end]) => {
    const event = fc.tuple(
      fc.constantFrom(...kinds).chain(filled),
      frame,
      fc.oneof({ weight: 12, arbitrary: fc.constant(end) }, lineEnd),
    );
    return fc.array(event, { maxLength: 12 });
  })
  .map((events) => events.map(([json, framed, end]) => framed(json, end)).join(''));
const spoilt = fc.array(fc.tuple(fc.nat(), fc.constantFrom(0xff, 0xc3, 0xe6, 0xf0, 0x80, 0x22, 0x5c)), {
  maxLength: 2,
});
/** Where packets end: after so many bytes, or after so many line ends. */
const cuts = fc.oneof(
  fc.record({
    by: fc.constant('bytes'),
    sizes: fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 30 }),
  }),
  fc.record({
    by: fc.constant('lines'),
    sizes: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 9 }),
  }),
  fc.constant({ by: 'bytes', sizes: [100_000] }),
);

function packetsOf(bytes: Uint8Array, { by, sizes }: { by: string; sizes: ReadonlyArray<number> }): Uint8Array[] {
  const packets: Uint8Array[] = [];
  let start = 0;
  let left = sizes[0] ?? 1;
  for (let at = 0; at < bytes.length; at += 1) {
    if (by === 'bytes' || bytes[at] === 0x0a || bytes[at] === 0x0d) left -= 1;
    if (left > 0) continue;
    packets.push(bytes.slice(start, at + 1));
    start = at + 1;
    left = sizes[packets.length % sizes.length] ?? 1;
  }
  return [...packets, bytes.slice(start)];
}

function read(packets: ReadonlyArray<Uint8Array>): Piece[] {
  const reader = createReader();
  return [...packets.flatMap((packet) => reader.push(packet)), ...reader.end()];
}

/** Every event through the parser: what the reader must agree with. */
function parsed(bytes: Uint8Array): Piece[] {
  const splitter = createSplitter();
  return [...splitter.push(bytes), ...splitter.end()].map(toPiece);
}

const one = (piece: Piece) => piece.events?.() ?? [piece];
const sum = (pieces: ReadonlyArray<Piece>, of: (piece: Piece) => number) =>
  pieces.reduce((total, piece) => total + of(piece), 0);

test('a stream says the same whether its events pass without a parser or not, however they are written and cut', () => {
  fc.assert(
    fc.property(stream, spoilt, cuts, (sent, spoils, cut) => {
      const bytes = encoder.encode(sent);
      for (const [at, byte] of spoils) if (bytes.length > 0) bytes[at % bytes.length] = byte;
      const pieces = read(packetsOf(bytes, cut));
      const wanted = parsed(bytes);
      expect(pieces.flatMap(one)).toEqual(wanted);
      expect(decoder.decode(concat(pieces.map((piece) => piece.bytes)))).toBe(decoder.decode(bytes));
      for (const piece of pieces) {
        const events = one(piece);
        expect(piece.deltas).toBe(sum(events, ({ deltas }) => deltas));
        expect(piece.bytesSaid).toBe(sum(events, ({ bytesSaid }) => bytesSaid));
        if (piece.events === undefined) continue;
        for (const { choices, usage, done, error, usageOnly, prompt } of events) {
          expect({ choices, usage, done, error, usageOnly, prompt }).toEqual({
            ...{ choices: piece.choices, usage: undefined, done: false, error: undefined },
            ...{ usageOnly: false, prompt: undefined },
          });
        }
      }
    }),
    { numRuns: 3000 },
  );
});

const event = (content: string, more = '') =>
  `data: {"id":"c","choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}}}]${more}}\n\n`;

test('events that differ in their texts only come as one piece, and give themselves one by one where that is asked', () => {
  const [first, ...rest] = ['a', 'bc', 'é', '', '"usage":{'].map((content) => event(content));
  const pieces = read([encoder.encode(first), encoder.encode(rest.join(''))]);
  expect(pieces).toHaveLength(2);
  expect(pieces[1]).toMatchObject({ deltas: 3, bytesSaid: 13 });
  expect(pieces[1]?.events?.().map(({ bytes }) => decoder.decode(bytes))).toEqual(rest);
});

test('an event that was cut in two is known by its shape too', () => {
  const bytes = encoder.encode([event('a'), event('b'), event('c')].join(''));
  const pieces = read([bytes.slice(0, 100), bytes.slice(100, 140), bytes.slice(140)]);
  expect(pieces.map(({ events }) => events !== undefined)).toEqual([false, true, true]);
});

test('usage, errors and ends are read wherever they stand', () => {
  const usage = ',"usage":{"prompt_tokens":7,"completion_tokens":3}';
  const bytes = encoder.encode([event('a'), event('b'), event('c', usage), event('d'), 'data: [DONE]\n\n'].join(''));
  const pieces = read([bytes]);
  expect(pieces.map((piece) => [piece.events !== undefined, piece.usage?.output, piece.done])).toEqual([
    [false, undefined, false],
    [true, undefined, false],
    [false, 3, false],
    [true, undefined, false],
    [false, undefined, true],
  ]);
});

test('a stream whose events have nothing in common is read one by one', () => {
  const events = Array.from({ length: 40 }, (_, at) => event('x', `,"number":${at}`));
  expect(read([encoder.encode(events.join(''))]).filter(({ events }) => events !== undefined)).toEqual([]);
});
