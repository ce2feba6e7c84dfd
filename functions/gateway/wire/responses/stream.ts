// Streamed responses: each event passes as it is, and is read for content, counts, errors and the end.
import { member, parseJson, textOf } from '#core/json.ts';
import { type Made, NOTHING, type Piece, type StreamReader } from '../codec.ts';
import { readOpenaiError } from '../openai-dialect.ts';
import { bytesIn } from '../prompt.ts';
import { dataOf, SseSplitter } from '../sse.ts';
import { mark } from './mark.ts';
import { toUsage } from './usage.ts';

const BEGUN: Piece['choices'] = [{ index: 0, finished: false }];
const FINISHED: Piece['choices'] = [{ index: 0, finished: true }];
/** Failures that are between the gateway and the provider: the client gets one of ours. */
const OURS = /^(server_error|rate_limit|insufficient_quota|usage_limit|billing|authentication|invalid_api_key)/;

export function createReader({ by }: Made): StreamReader {
  const splitter = new SseSplitter();
  const read = (bytes: Uint8Array) => readEvent(by === undefined ? bytes : mark(bytes, idIn(eventIn(bytes)), by));
  return { push: (bytes) => splitter.push(bytes).flatMap(read), end: () => splitter.end().flatMap(read) };
}

function eventIn(bytes: Uint8Array): unknown {
  const data = dataOf(bytes);
  return data === undefined ? undefined : parseJson(data);
}

function idIn(event: unknown): string | undefined {
  return textOf(member(member(event, 'response'), 'id'));
}

function readEvent(bytes: Uint8Array): ReadonlyArray<Piece> {
  const event = eventIn(bytes);
  const type = textOf(member(event, 'type')) ?? '';
  switch (type) {
    case 'response.completed':
    case 'response.incomplete':
      return [counted(event), { ...NOTHING, bytes, done: true }];
    case 'response.failed':
      return failed(bytes, event);
    case 'error':
      return [
        { ...NOTHING, error: readOpenaiError(member(event, 'error') === undefined ? event : member(event, 'error')) },
      ];
    default:
      if (type.startsWith('response.')) return [content(bytes, event, type)];
      // Comments, and events that are new to us.
      return [{ ...NOTHING, bytes }];
  }
}

/** The count of an end. The event itself waits for the settlement. */
function counted(event: unknown): Piece {
  const usage = toUsage(member(event, 'response'));
  return { ...NOTHING, frame: event, choices: FINISHED, usage };
}

function failed(bytes: Uint8Array, event: unknown): ReadonlyArray<Piece> {
  const error = readOpenaiError(member(member(event, 'response'), 'error'));
  if (error.code !== undefined && !OURS.test(error.code)) return [counted(event), { ...NOTHING, bytes, done: true }];
  const usage = toUsage(member(event, 'response'));
  return [...(usage === undefined ? [] : [{ ...NOTHING, usage }]), { ...NOTHING, error }];
}

function content(bytes: Uint8Array, event: unknown, type: string): Piece {
  const delta = type.endsWith('.delta') ? (textOf(member(event, 'delta')) ?? '') : '';
  // A summary of thoughts is shorter or longer than what is billed.
  const isBilled = delta !== '' && !type.startsWith('response.reasoning_summary');
  return { ...NOTHING, bytes, frame: event, choices: BEGUN, deltas: isBilled ? 1 : 0, outputBytes: bytesIn(delta) };
}
