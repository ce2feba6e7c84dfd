// Streamed messages: each event passes as it is, and is read for content, counts, errors and the end.
import { member, textOf } from '#core/json/json.ts';
import { BEGUN, FINISHED, NOTHING, type Piece, type ReplyMarks, type StreamReader } from '../codec.ts';
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

const STOP: Piece = { ...NOTHING, bytes: toNamedEvent('message_stop', {}), done: true };

export function createReader({ keepPending }: Pick<ReplyMarks, 'keepPending'> = {}): StreamReader {
  let counts: MessagesUsage = {};
  let isFinished = false;
  let hasEnded = false;

  return createEventReader(keepPending, read, () => (isFinished && !hasEnded ? [STOP] : []));

  function read(bytes: Uint8Array): Piece {
    const event = jsonOf(bytes);
    switch (member(event, 'type')) {
      case 'message_start':
        counts = addUsage(counts, member(member(event, 'message'), 'usage'));
        return { ...NOTHING, bytes, frame: event, choices: BEGUN, prompt: toUsage({ ...counts, output: 0 }) };
      case 'content_block_start':
        return begin(bytes, event);
      case 'content_block_delta':
        return content(bytes, event, textIn(member(event, 'delta'), DELTA_TEXTS));
      case 'content_block_stop':
        return content(bytes, event, '');
      case 'message_delta':
        return finish(bytes, event);
      case 'message_stop':
        hasEnded = true;
        return { ...NOTHING, bytes, done: true };
      case 'error':
        return { ...NOTHING, error: anthropicError(event) };
      default:
        // Pings, and events that are new to us. Text that is no JSON may be the beginning of one that was cut.
        return { ...NOTHING, bytes, outputBytes: event === undefined ? bytesIn(dataOf(bytes) ?? '') : 0 };
    }
  }

  function finish(bytes: Uint8Array, event: unknown): Piece {
    const counted = member(event, 'usage');
    counts = addUsage(counts, counted);
    const finished = textOf(member(member(event, 'delta'), 'stop_reason')) !== undefined;
    isFinished ||= finished;
    return {
      ...NOTHING,
      bytes,
      frame: event,
      choices: finished ? FINISHED : BEGUN,
      usage: isOutputCounted(counted) ? toUsage(counts) : undefined,
    };
  }
}

function begin(bytes: Uint8Array, event: unknown): Piece {
  const block = member(event, 'content_block');
  const isSearch = member(block, 'type') === 'server_tool_use' && member(block, 'name') === 'web_search';
  return { ...content(bytes, event, textIn(block, BLOCK_TEXTS)), searches: isSearch ? 1 : 0 };
}

function content(bytes: Uint8Array, event: unknown, text: string): Piece {
  const deltas = text === '' ? 0 : 1;
  return { ...NOTHING, bytes, frame: event, choices: BEGUN, deltas, outputBytes: bytesIn(text) };
}

/** Members that a model has written. */
const BLOCK_TEXTS = ['text', 'thinking', 'name'];
const DELTA_TEXTS = ['text', 'thinking', 'partial_json'];

function textIn(of: unknown, names: ReadonlyArray<string>): string {
  return names.map((name) => textOf(member(of, name)) ?? '').join('');
}
