// Streams of OpenAI's dialect: what only goes on with an answer passes unread, everything else is parsed event by event.
import { toUsage } from '#core/usage.ts';
import { type CreateReader, NOTHING, type Piece } from './dialect.ts';
import { listOf, member, parseJson } from './json.ts';
import { lengthOf, soundIn } from './output-size.ts';
import { bytesIn } from './prompt.ts';
import { createSplitter, dataOf } from './sse.ts';
import { openaiError } from './wire-error.ts';

/** A character for each byte: the engine searches text natively, and offsets in it are offsets in the bytes. */
const latin1 = new TextDecoder('latin1');

const BLANK_LINE = '\n\n';
const DONE = '[DONE]';
/** An event is parsed where a count or an error has a value, where the stream ends, and where a name may be written with escapes. */
const COUNTED = 'usage"';
const FAILED = 'error"';
const ESCAPED = '\\u00';
const NO_VALUE = /\s*:\s*null/y;
/** Members that all chunks of a stream share. */
const FRAME = ['id', 'object', 'created', 'model'];

export const createReader: CreateReader = () => {
  const splitter = createSplitter();
  return {
    push: (bytes) => {
      const text = splitter.isBetween ? latin1.decode(bytes) : '';
      // Nearly all providers end lines with a line feed, and packets with an event.
      const isWhole = text.endsWith(BLANK_LINE) && !text.includes('\r');
      return isWhole ? readWhole(bytes, text) : splitter.push(bytes).map(toPiece);
    },
    end: () => splitter.end().map(toPiece),
  };
};

/** Whole events: the telling ones are parsed, and what stands between them is one piece each. */
function readWhole(bytes: Uint8Array, text: string): ReadonlyArray<Piece> {
  const pieces: Piece[] = [];
  for (let from = 0; from < bytes.length; ) {
    const telling = tellingFrom(text, from);
    const start = telling === text.length ? telling : startOf(text, telling, from);
    if (start > from)
      pieces.push(...between(bytes.subarray(from, start), text.slice(from, start).includes('"choices"')));
    from = start;
    if (from === text.length) break;
    from = text.indexOf(BLANK_LINE, telling) + BLANK_LINE.length;
    pieces.push(toPiece(bytes.subarray(start, from)));
  }
  return pieces;
}

/** The beginning of the event in which this stands. */
function startOf(text: string, at: number, from: number): number {
  const before = text.lastIndexOf(BLANK_LINE, at);
  return before < from ? from : before + BLANK_LINE.length;
}

/** The next word that tells more than that an answer goes on; the text's length where there is none. */
function tellingFrom(text: string, from: number): number {
  const found = [valueFrom(text, COUNTED, from), valueFrom(text, FAILED, from), ...[DONE, ESCAPED].map(find)];
  return Math.min(...found.map((at) => (at === -1 ? text.length : at)));

  function find(word: string): number {
    return text.indexOf(word, from);
  }
}

/** The next place where this member has a value, or -1. Some providers write `"usage":null` into each event. */
function valueFrom(text: string, name: string, from: number): number {
  let at = text.indexOf(name, from);
  while (at !== -1) {
    NO_VALUE.lastIndex = at + name.length;
    if (!NO_VALUE.test(text)) return at;
    at = text.indexOf(name, at + name.length);
  }
  return -1;
}

/** Comments alone do not begin an answer, so they are told apart. */
function between(bytes: Uint8Array, hasChoices: boolean): ReadonlyArray<Piece> {
  return hasChoices ? [{ ...NOTHING, bytes, events: () => eventsOf(bytes) }] : eventsOf(bytes);
}

function eventsOf(bytes: Uint8Array): ReadonlyArray<Piece> {
  const splitter = createSplitter();
  return [...splitter.push(bytes), ...splitter.end()].map(toPiece);
}

/** One event, parsed. */
export function toPiece(event: Uint8Array): Piece {
  const data = dataOf(event);
  if (data === undefined || data.trim() === DONE) return { ...NOTHING, bytes: event, done: data !== undefined };
  const chunk = parseJson(data);
  // Data that is no JSON reaches the client all the same: without a count of the provider's, all of it is output.
  if (chunk === undefined) return { ...NOTHING, bytes: event, outputBytes: bytesIn(data) };
  const choices = member(chunk, 'choices');
  const usage = toUsage(member(chunk, 'usage') ?? member(member(chunk, 'x_groq'), 'usage'));
  const error = member(chunk, 'error');
  return {
    ...NOTHING,
    ...sizeOf(listOf(choices)),
    bytes: event,
    usage,
    usageOnly: usage !== undefined && Array.isArray(choices) && choices.length === 0,
    choices: listOf(choices).map((choice) => ({
      index: Number(member(choice, 'index') ?? 0),
      finished: typeof member(choice, 'finish_reason') === 'string',
    })),
    frame: Array.isArray(choices) ? () => frameOf(chunk) : undefined,
    error: error === undefined || error === null ? undefined : openaiError(chunk),
  };
}

function sizeOf(choices: ReadonlyArray<unknown>): Pick<Piece, 'deltas' | 'outputBytes' | 'sound'> {
  let deltas = 0;
  let outputBytes = 0;
  let sound = 0;
  for (const choice of choices) {
    const delta = member(choice, 'delta');
    const length = lengthOf(delta);
    const heard = soundIn(delta);
    // A piece of sound may be less than a token, and what is counted here may cut a stream.
    if (length > 0 || heard >= 1) deltas += 1;
    outputBytes += length;
    sound += heard;
  }
  return { deltas, outputBytes, sound };
}

function frameOf(chunk: unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    FRAME.map((name) => [name, member(chunk, name)] as const).filter(([, value]) => value !== undefined),
  );
}
