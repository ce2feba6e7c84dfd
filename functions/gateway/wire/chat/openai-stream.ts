// Streams of OpenAI's dialect. Events that only continue an answer pass unread; all others are parsed one by one.

import { countIn, listOf, member, parseJson } from '#core/json/json.ts';
import { LONG_TEXT } from '#core/json/json-limits.ts';
import { toUsage } from '#core/money/usage.ts';
import { EMPTY_PIECE, type Piece, type ReplyOptions, type StreamReader } from '../codec.ts';
import { readOpenaiError } from '../dialects/openai-dialect.ts';
import { bytesIn } from '../prompt/prompt.ts';
import { dataOf, latin1, SseSplitter } from '../streams/sse.ts';
import { sizeOf } from './output-size.ts';

const BLANK_LINE = '\n\n';
const DONE = '[DONE]';
/**
 * The pattern of events that do more than continue an answer: the end of the stream, a count or an error with a value
 * (some providers write `"usage":null` into each event), and a name that may be written with escapes.
 */
const SIGNIFICANT = /\[DONE\]|(?:usage|error)"(?!\s*:\s*null)|\\u00/;
/** Each match of the pattern contains one of these texts, which the engine finds faster. */
const SIGNIFICANT_TEXTS = ['usage"', 'error"', '\\u00', DONE];

export function createReader({ resizePending }: Pick<ReplyOptions, 'resizePending'> = {}): StreamReader {
  const splitter = new SseSplitter(resizePending);
  return {
    push: (bytes) => {
      const isShort = bytes.length <= LONG_TEXT;
      const length = isShort && splitter.isAtEventStart ? lengthUnread(latin1.decode(bytes)) : 0;
      if (length === 0) return splitter.push(bytes).map(toPiece);
      const unread = length === bytes.length ? bytes : bytes.subarray(0, length);
      const piece = { ...EMPTY_PIECE, bytes: unread, readEvents };
      return length === bytes.length ? [piece] : [piece, ...splitter.push(bytes.subarray(length)).map(toPiece)];
    },
    end: () => splitter.end().map(toPiece),
  };
}

/** Whole events, parsed. */
function readEvents(bytes: Uint8Array): ReadonlyArray<Piece> {
  return new SseSplitter().push(bytes).map(toPiece);
}

/**
 * The length of the leading whole events that only continue answers. They pass as one piece. Comments alone do not
 * begin an answer.
 */
function lengthUnread(text: string): number {
  // Nearly all providers end lines with a line feed.
  if (text.includes('\r')) return 0;
  const significant = SIGNIFICANT_TEXTS.some((one) => text.includes(one)) ? text.search(SIGNIFICANT) : -1;
  const end = text.lastIndexOf(BLANK_LINE, significant === -1 ? text.length : significant);
  const choices = text.indexOf('"choices"');
  return choices !== -1 && choices < end ? end + BLANK_LINE.length : 0;
}

/** One event, parsed. */
export function toPiece(event: Uint8Array): Piece {
  const data = dataOf(event);
  if (data === undefined || data.trim() === DONE) return { ...EMPTY_PIECE, bytes: event, done: data !== undefined };
  const chunk = parseJson(data);
  // Data that is no JSON reaches the client too: if the provider does not count, all of it is output.
  if (chunk === undefined) return { ...EMPTY_PIECE, bytes: event, outputBytes: bytesIn(data) };
  const choices = member(chunk, 'choices');
  const usage = toUsage(member(chunk, 'usage') ?? member(member(chunk, 'x_groq'), 'usage'));
  const error = member(chunk, 'error');
  return {
    ...EMPTY_PIECE,
    ...sizeOf(listOf(choices), 'delta'),
    bytes: event,
    usage,
    usageOnly: usage !== undefined && Array.isArray(choices) && choices.length === 0,
    choices: listOf(choices).map((choice) => ({
      index: countIn(choice, 'index') ?? 0,
      finished: typeof member(choice, 'finish_reason') === 'string',
    })),
    event: Array.isArray(choices) ? chunk : undefined,
    error: error === undefined || error === null ? undefined : readOpenaiError(chunk),
  };
}
