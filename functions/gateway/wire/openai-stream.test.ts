import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/runs.ts';
import { concat } from '../members.ts';
import type { Piece } from './dialect.ts';
import { toPiece } from './openai-chunk.ts';
import { createReaders } from './openai-stream.ts';
import { cuts, KINDS, packetsOf, spoilt, stream, streamOf } from './random-streams.fixture.ts';
import { createSplitter } from './sse.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function read(packets: ReadonlyArray<Uint8Array>, reader = createReaders()(0)): Piece[] {
  return [...packets.flatMap((packet) => reader.push(packet)), ...reader.end()];
}

/** Every event through the parser: what the reader must agree with. */
function parsed(bytes: Uint8Array): Piece[] {
  const splitter = createSplitter();
  return [...splitter.push(bytes), ...splitter.end()].map(toPiece);
}

const one = (piece: Piece) => piece.events?.() ?? [piece];
const told = (piece: Piece) => ({ ...piece, frame: piece.frame?.() });
const sum = (pieces: ReadonlyArray<Piece>, of: (piece: Piece) => number) =>
  pieces.reduce((total, piece) => total + of(piece), 0);

/** The reader says of a stream what the parser says of it. */
function agree(bytes: Uint8Array, pieces: ReadonlyArray<Piece>): void {
  const wanted = parsed(bytes);
  expect(pieces.flatMap(one).map(told)).toEqual(wanted.map(told));
  expect(decoder.decode(concat(pieces.map((piece) => piece.bytes)))).toBe(decoder.decode(bytes));
  for (const piece of pieces) {
    const events = one(piece);
    expect(piece.deltas).toBe(sum(events, ({ deltas }) => deltas));
    expect(piece.bytesSaid).toBe(sum(events, ({ bytesSaid }) => bytesSaid));
    expect(piece.frame?.()).toEqual(events[0]?.frame?.());
    if (piece.events === undefined) continue;
    for (const { choices, usage, done, error, usageOnly, prompt } of events) {
      expect({ choices, usage, done, error, usageOnly, prompt }).toEqual({
        ...{ choices: piece.choices, usage: undefined, done: false, error: undefined },
        ...{ usageOnly: false, prompt: undefined },
      });
    }
  }
}

test('a stream says the same whether its events pass without a parser or not, however they are written and cut', () => {
  fc.assert(
    fc.property(stream, spoilt, cuts, (sent, spoils, cut) => {
      const bytes = encoder.encode(sent);
      for (const [at, byte] of spoils) if (bytes.length > 0) bytes[at % bytes.length] = byte;
      agree(bytes, read(packetsOf(bytes, cut)));
    }),
    { numRuns: runs(3000) },
  );
});

test('a stream says the same whatever other streams of the provider said before it, and meanwhile', () => {
  const streams = fc.array(fc.tuple(streamOf(2, KINDS.slice(0, 12)), cuts), { minLength: 2, maxLength: 4 });
  fc.assert(
    fc.property(streams, (sent) => {
      const createReader = createReaders();
      const running = sent.map(([text, cut]) => {
        const bytes = encoder.encode(text);
        return { bytes, packets: packetsOf(bytes, cut), reader: createReader(0), pieces: [] as Piece[] };
      });
      // In turn, as packets of streams come that run at the same time.
      for (let turn = 0; running.some(({ packets }) => turn < packets.length); turn += 1) {
        for (const { packets, reader, pieces } of running)
          pieces.push(...reader.push(packets[turn] ?? new Uint8Array()));
      }
      for (const { bytes, reader, pieces } of running) agree(bytes, [...pieces, ...reader.end()]);
    }),
    { numRuns: runs(800) },
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

const chunk = (id: string, created: number, delta: string, more = '') =>
  `data: {"id":"${id}","object":"chat.completion.chunk","created":${created},"model":"m","choices":[{"index":0,"delta":${delta},"finish_reason":null}]${more}}\n\n`;
const isKnown = (pieces: ReadonlyArray<Piece>) => pieces.map(({ events }) => events !== undefined);

test('what one stream has shown the next ones know from their first event on, with an id and a date of their own', () => {
  const createReader = createReaders();
  const [role, word] = ['{"role":"assistant","content":""}', '{"content":"word"}'];
  const sent = (id: string, created: number) =>
    encoder.encode([role, word, word].map((delta) => chunk(id, created, delta)).join(''));
  expect(isKnown(read([sent('a', 1)], createReader(0)))).toEqual([false, false, true]);
  const pieces = read([sent('b', 1_733_000_000)], createReader(0));
  expect(isKnown(pieces)).toEqual([true, true]);
  expect(pieces[0]?.frame?.()).toEqual({
    ...{ id: 'b', object: 'chat.completion.chunk', created: 1_733_000_000, model: 'm' },
  });
});

test.each([
  ['a list', '{"content":"a"}', ',"citations":["https://example.com/secret"]'],
  ['an object', '{"content":"a"}', ',"metadata":{"user":"secret"}'],
  ['a number', '{"content":"a"}', ',"seed":4711'],
  [
    'what is called beside another',
    '{"tool_calls":[{"index":0,"function":{"arguments":"a"}},{"index":1,"id":"secret"}]}',
    '',
  ],
  ['a call in the old way', '{"function_call":{"arguments":"secret"}}', ''],
  ['a long name', '{"content":"a"}', `,"${'secret'.repeat(200)}":null`],
])('nothing that a stream said is kept for others: %s', (_, delta, more) => {
  const createReader = createReaders();
  const sent = encoder.encode(chunk('a', 1, delta, more).repeat(2));
  expect(isKnown(read([sent], createReader(0)))).toEqual([false, true]);
  expect(isKnown(read([sent], createReader(0)))).toEqual([false, true]);
});

test('an answer that ends for a reason that providers agree on is known by its shape, and no other reason is kept for others', () => {
  const createReader = createReaders();
  const end = (reason: string) =>
    encoder.encode(chunk('a', 1, '{}').replace('"finish_reason":null', `"finish_reason":"${reason}"`));
  const seen = (reason: string) =>
    read([end(reason)], createReader(0)).map(({ events, choices }) => [events !== undefined, choices[0]?.finished]);
  expect([seen('stop'), seen('stop'), seen('length'), seen('stop')]).toEqual([
    ...[[[false, true]], [[true, true]], [[false, true]], [[true, true]]],
  ]);
  expect([seen('secret'), seen('secret')]).toEqual([[[false, true]], [[false, true]]]);
});

test('how an answer ends, what it used and what failed is read in every stream, also where others said the same', () => {
  const createReader = createReaders();
  const sent = encoder.encode(
    [
      chunk('a', 1, '{"content":"word"}'),
      chunk('a', 1, '{"content":"word"}', ',"usage":{"prompt_tokens":7,"completion_tokens":3}'),
      chunk('a', 1, '{}').replace('"finish_reason":null', '"finish_reason":"stop"'),
      'data: {"error":{"message":"word"}}\n\n',
      'data: [DONE]\n\n',
    ].join(''),
  );
  const seen = () =>
    read([sent], createReader(0)).map(({ usage, choices, error, done }) => ({
      ...{ output: usage?.output, finished: choices[0]?.finished, error: error?.message, done },
    }));
  const first = seen();
  expect(first).toMatchObject([{ done: false }, { output: 3 }, { finished: true }, { error: 'word' }, { done: true }]);
  expect(seen()).toEqual(first);
});
