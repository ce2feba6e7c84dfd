import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { concat } from '../members.ts';
import type { Piece } from './dialect.ts';
import { toPiece } from './openai-chunk.ts';
import { createReaders } from './openai-stream.ts';
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

/** What stands where a number is wanted: each stream has another, and some are none. */
const number = fc.oneof(
  { weight: 6, arbitrary: fc.nat().map(String) },
  fc.constantFrom(
    '0',
    '00',
    '01',
    '-1',
    '1.5',
    '1e3',
    '1.',
    '',
    '"1"',
    'null',
    '{"prompt_tokens":7,"completion_tokens":3}',
  ),
);

/** Events of one kind differ in their texts only, and in the number that stands for `§`. `T` is where a text stands. */
const KINDS = [
  '{"id":T,"object":"chat.completion.chunk","created":§,"model":T,"choices":[{"index":0,"delta":{"content":T},"finish_reason":null}]}',
  '{"id":T,"created":§,"model":T,"service_tier":T,"choices":[{"index":0,"delta":{"role":T,"content":T,"refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}',
  '{"id":T,"created":§,"choices":[{"index":0,"delta":{},"finish_reason":T}]}',
  '{"id":T,"created":§,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":T,"type":"function","function":{"name":T,"arguments":T,"more":T}}]},"finish_reason":null}]}',
  '{"id":T,"created":§,"created":§,"choices":[{"index":0,"delta":{"content":T},"finish_reason":null}]}',
  '{"created":§,"choices":[{"index":0,"delta":{"content":T},"finish_reason":null}],"usage":§}',
  '{"created":§,"usage":§,"choices":[{"index":§,"delta":{"content":T},"finish_reason":null}]}',
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
  '{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":T}]}]},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"audio":{"id":T,"data":"AAAA","transcript":T}},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"type":"custom","custom":{"name":"n","input":T},"input":T}]},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":T,"input":T}}]},"finish_reason":null}]}',
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
const texts = fc.array(anyText, { minLength: 6, maxLength: 6 });
const filled = (pattern: string) =>
  fc.tuple(texts, number).map(([six, one]) =>
    six.reduce(
      (json, text) => json.replace('T', () => text.replaceAll('T', 't')),
      pattern.replaceAll('§', () => one),
    ),
  );
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
/** Few kinds in a stream, mostly written and ended in the same way. Of all kinds, or of the first few. */
const streamOf = (most: number, kindsOf = KINDS) =>
  fc
    .tuple(fc.array(fc.constantFrom(...kindsOf), { minLength: 1, maxLength: most }), lineEnd)
    .chain(([kinds, end]) => {
      const event = fc.tuple(
        fc.constantFrom(...kinds).chain(filled),
        frame,
        fc.oneof({ weight: 12, arbitrary: fc.constant(end) }, lineEnd),
      );
      return fc.array(event, { maxLength: 12 });
    })
    .map((events) => events.map(([json, framed, end]) => framed(json, end)).join(''));
const stream = streamOf(3);
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
    { numRuns: 3000 },
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
    { numRuns: 800 },
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
