// Streamed messages: each event passes unchanged, and is read for content, counts, errors and the end.
import { member, textOf } from '#core/json/json.ts';
import { EMPTY_PIECE, ENDED_ANSWER, OPEN_ANSWER, type Piece, type ReplyOptions, type StreamReader } from '../codec.ts';
import {
  addUsage,
  anthropicError,
  isOutputCounted,
  type MessagesUsage,
  toUsage,
} from '../dialects/anthropic-dialect.ts';
import { bytesIn } from '../prompt/prompt.ts';
import { createEventReader } from '../streams/event-reader.ts';
import { dataOf, jsonOf, toNamedEvent } from '../streams/sse.ts';

const STOP: Piece = { ...EMPTY_PIECE, bytes: toNamedEvent('message_stop', {}), done: true };

export function createReader({ resizePending }: Pick<ReplyOptions, 'resizePending'> = {}): StreamReader {
  let counts: MessagesUsage = {};
  let isFinished = false;
  let hasEnded = false;

  return createEventReader(resizePending, read, () => (isFinished && !hasEnded ? [STOP] : []));

  function read(bytes: Uint8Array): Piece {
    const event = jsonOf(bytes);
    switch (member(event, 'type')) {
      case 'message_start':
        counts = addUsage(counts, member(member(event, 'message'), 'usage'));
        return { ...EMPTY_PIECE, bytes, event, choices: OPEN_ANSWER, prompt: toUsage({ ...counts, output: 0 }) };
      case 'content_block_start':
        return begin(bytes, event);
      case 'content_block_delta':
        return toContentPiece(bytes, event, textIn(member(event, 'delta'), DELTA_TEXTS));
      case 'content_block_stop':
        return toContentPiece(bytes, event, '');
      case 'message_delta':
        return finish(bytes, event);
      case 'message_stop':
        hasEnded = true;
        return { ...EMPTY_PIECE, bytes, done: true };
      case 'error':
        return { ...EMPTY_PIECE, error: anthropicError(event) };
      default:
        // Pings and unknown events. A text that is no JSON may be the beginning of an event that was cut off.
        return { ...EMPTY_PIECE, bytes, outputBytes: event === undefined ? bytesIn(dataOf(bytes) ?? '') : 0 };
    }
  }

  function finish(bytes: Uint8Array, event: unknown): Piece {
    const counted = member(event, 'usage');
    counts = addUsage(counts, counted);
    const finished = textOf(member(member(event, 'delta'), 'stop_reason')) !== undefined;
    isFinished ||= finished;
    return {
      ...EMPTY_PIECE,
      bytes,
      event,
      choices: finished ? ENDED_ANSWER : OPEN_ANSWER,
      usage: isOutputCounted(counted) ? toUsage(counts) : undefined,
    };
  }
}

function begin(bytes: Uint8Array, event: unknown): Piece {
  const block = member(event, 'content_block');
  const isSearch = member(block, 'type') === 'server_tool_use' && member(block, 'name') === 'web_search';
  return { ...toContentPiece(bytes, event, textIn(block, BLOCK_TEXTS)), searches: isSearch ? 1 : 0 };
}

function toContentPiece(bytes: Uint8Array, event: unknown, text: string): Piece {
  const deltas = text === '' ? 0 : 1;
  return { ...EMPTY_PIECE, bytes, event, choices: OPEN_ANSWER, deltas, outputBytes: bytesIn(text) };
}

/** Members that the model wrote. */
const BLOCK_TEXTS = ['text', 'thinking', 'name'];
const DELTA_TEXTS = ['text', 'thinking', 'partial_json'];

function textIn(holder: unknown, names: ReadonlyArray<string>): string {
  return names.map((name) => textOf(member(holder, name)) ?? '').join('');
}
