import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { concat } from '#core/json/bytes.ts';
import { runs } from '../../../../../test/support/runs.ts';
import { createReader, toPiece } from '../../../wire/chat/openai-stream.ts';
import type { Piece } from '../../../wire/codec.ts';
import { SseSplitter } from '../../../wire/streams/sse.ts';
import { packetSizes, packetsOf, randomByteErrors, randomStream } from './random-streams.fixture.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function read(packets: ReadonlyArray<Uint8Array>): Piece[] {
  const reader = createReader();
  return [...packets.flatMap((packet) => reader.push(packet)), ...reader.end()];
}

/** Every event through the parser: what the reader must agree with. */
function parsed(bytes: Uint8Array): Piece[] {
  const splitter = new SseSplitter();
  return [...splitter.push(bytes), ...splitter.end()].map(toPiece);
}

const one = (piece: Piece) => piece.readEvents?.(piece.bytes) ?? [piece];
/** A piece as tests compare it. Blank lines between events may belong to the event before or after them. */
const toComparable = (piece: Piece) => ({ ...piece, bytes: decoder.decode(piece.bytes).trim() });
const isBlank = ({ bytes }: { bytes: string }) => bytes === '';

/**
 * Expects that the reader and the parser read the same in a stream, and that no unread piece has a count, a failure or
 * an end.
 */
function expectSameContent(bytes: Uint8Array, pieces: ReadonlyArray<Piece>): void {
  const readable = (those: ReadonlyArray<Piece>) => those.map(toComparable).filter((piece) => !isBlank(piece));
  expect(readable(pieces.flatMap(one))).toEqual(readable(parsed(bytes)));
  // An event that the end has cut gets its blank line.
  const passed = decoder.decode(concat(pieces.map((piece) => piece.bytes)));
  expect([decoder.decode(bytes), `${decoder.decode(bytes)}\n\n`]).toContain(passed);
  const unread = pieces.flatMap((piece) => piece.readEvents?.(piece.bytes) ?? []);
  for (const { usage, done, error, usageOnly, prompt } of unread) {
    expect({ usage, done, error, usageOnly, prompt }).toEqual({
      usage: undefined,
      done: false,
      error: undefined,
      usageOnly: false,
      prompt: undefined,
    });
  }
}

test('a stream has the same content whether its events are read immediately or later, whatever their form and packets', () => {
  fc.assert(
    fc.property(randomStream, randomByteErrors, packetSizes, (sent, spoils, cut) => {
      const bytes = encoder.encode(sent);
      for (const [at, byte] of spoils) if (bytes.length > 0) bytes[at % bytes.length] = byte;
      expectSameContent(bytes, read(packetsOf(bytes, cut)));
    }),
    { numRuns: runs(3000) },
  );
});

const event = (content: string, more = '') =>
  `data: {"id":"c","choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}}}]${more}}\n\n`;
const isUnread = (pieces: ReadonlyArray<Piece>) => pieces.map(({ readEvents }) => readEvents !== undefined);

test('events that only continue an answer pass as one unread piece, which can be read later', () => {
  const sent = ['a', 'bc', 'é', '', '"usage":{', '"error":{}'].map((content) => event(content, ',"usage":null'));
  const pieces = read([encoder.encode(sent.join(''))]);
  expect(isUnread(pieces)).toEqual([true]);
  expect(
    pieces
      .slice(0, 1)
      .flatMap((piece) => piece.readEvents?.(piece.bytes) ?? [])
      .map(({ bytes }) => decoder.decode(bytes)),
  ).toEqual(sent);
});

test('usage, errors and ends are read wherever they are', () => {
  const usage = ',"usage": {"prompt_tokens":7,"completion_tokens":3}';
  const sent = [event('a'), event('b'), event('c', usage), event('d'), event('e', ',"error":{"message":"m"}')];
  const pieces = read([encoder.encode([...sent, 'data: [DONE]\n\n'].join(''))]);
  expect(
    pieces.map(({ bytes, readEvents, usage, error, done }) => [
      readEvents?.(bytes).length,
      usage?.output,
      error?.message,
      done,
    ]),
  ).toEqual([
    [2, undefined, undefined, false],
    [undefined, 3, undefined, false],
    [undefined, undefined, undefined, false],
    [undefined, undefined, 'm', false],
    [undefined, undefined, undefined, true],
  ]);
});

test('a count whose name is written with escapes is a count', () => {
  const [piece] = read([encoder.encode(event('a', ',"us\\u0061ge":{"prompt_tokens":7,"completion_tokens":3}'))]);
  expect(piece?.usage?.output).toBe(3);
});

test('an event that was cut in two is read, and the events after it pass unread again', () => {
  const bytes = encoder.encode([event('a'), event('b'), event('c')].join(''));
  const end = event('a').length + event('b').length;
  expect(isUnread(read([bytes.slice(0, 100), bytes.slice(100, end), bytes.slice(end)]))).toEqual([true, false, true]);
});

test('comments alone are read: they do not begin an answer', () => {
  expect(isUnread(read([encoder.encode(': waiting\n\n')]))).toEqual([false]);
});
