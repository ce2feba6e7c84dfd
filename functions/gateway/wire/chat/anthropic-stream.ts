// Events of a streamed message as chat completion chunks: zero, one or several chunks for an event.
import { member, textOf } from '#core/json/json.ts';
import { EMPTY_PIECE, type Piece, type ReplyOptions, type StreamReader } from '../codec.ts';
import {
  addUsage,
  anthropicError,
  isOutputCounted,
  type MessagesUsage,
  toUsage,
} from '../dialects/anthropic-dialect.ts';
import { bytesIn } from '../prompt/prompt.ts';
import { createEventReader } from '../streams/event-reader.ts';
import { idIn, setPart } from '../streams/parts.ts';
import { jsonOf, toComment, toEvent } from '../streams/sse.ts';
import { toFinishReason, toOpenAiUsage } from './anthropic-reply.ts';

/** A tool call of the stream. */
interface Call {
  /** Index among the tool calls of the answer, not among its blocks. */
  readonly index: number;
  hasArguments: boolean;
}

export function createReader({ created, resizePending }: ReplyOptions): StreamReader {
  const calls = new Map<unknown, Call>();
  let shared: Readonly<Record<string, unknown>> = { object: 'chat.completion.chunk', created };
  let head = headOf(shared);
  let counts: MessagesUsage = {};
  let finished = false;
  let ended = false;

  return createEventReader(resizePending, read, () => (finished ? conclude() : []));

  function read(bytes: Uint8Array): ReadonlyArray<Piece> {
    const event = jsonOf(bytes);
    switch (member(event, 'type')) {
      case 'message_start':
        return start(member(event, 'message'));
      case 'content_block_start':
        return open(member(event, 'index'), member(event, 'content_block'));
      case 'content_block_delta':
        return continueBlock(member(event, 'index'), member(event, 'delta'));
      case 'content_block_stop':
        return close(member(event, 'index'));
      case 'message_delta':
        return finish(textOf(member(member(event, 'delta'), 'stop_reason')), member(event, 'usage'));
      case 'message_stop':
        return conclude();
      case 'ping':
        return [piece(toComment('ping'), {})];
      case 'error':
        return [piece(new Uint8Array(0), { error: anthropicError(event) })];
      default:
        return [];
    }
  }

  function start(message: unknown): ReadonlyArray<Piece> {
    shared = { id: idIn(message, 'id'), ...shared, model: idIn(message, 'model') };
    head = headOf(shared);
    counts = addUsage(counts, member(message, 'usage'));
    return [chunk({ role: 'assistant', content: '' }, { prompt: toUsage({ ...counts, output: 0 }) })];
  }

  function open(index: unknown, block: unknown): ReadonlyArray<Piece> {
    if (member(block, 'type') === 'text') return addText('content', textOf(member(block, 'text')));
    if (member(block, 'type') !== 'tool_use') return [];
    const call: Call = { index: calls.size, hasArguments: false };
    setPart(calls, index, call);
    const name = textOf(member(block, 'name')) ?? '';
    const begun = { index: call.index, id: idIn(block, 'id'), type: 'function', function: { name, arguments: '' } };
    return [chunk({ tool_calls: [begun] }, { text: name })];
  }

  function continueBlock(index: unknown, delta: unknown): ReadonlyArray<Piece> {
    switch (member(delta, 'type')) {
      case 'text_delta':
        return addText('content', textOf(member(delta, 'text')));
      case 'thinking_delta':
        return addText('reasoning_content', textOf(member(delta, 'thinking')));
      case 'input_json_delta':
        return addArguments(calls.get(index), textOf(member(delta, 'partial_json')) ?? '');
      default:
        return [];
    }
  }

  function addText(name: 'content' | 'reasoning_content', text = ''): ReadonlyArray<Piece> {
    return text === '' ? [] : [chunk({ [name]: text }, { text })];
  }

  function addArguments(call: Call | undefined, json: string): ReadonlyArray<Piece> {
    if (call === undefined || json === '') return [];
    call.hasArguments = true;
    return [chunk({ tool_calls: [{ index: call.index, function: { arguments: json } }] }, { text: json })];
  }

  /** Closes a call. A call without arguments gets `{}`, because clients parse them. */
  function close(index: unknown): ReadonlyArray<Piece> {
    const call = calls.get(index);
    return call === undefined || call.hasArguments ? [] : addArguments(call, '{}');
  }

  function finish(stopReason: string | undefined, counted: unknown): ReadonlyArray<Piece> {
    counts = addUsage(counts, counted);
    const usage = isOutputCounted(counted) ? toUsage(counts) : undefined;
    if (stopReason === undefined) return usage === undefined ? [] : [piece(new Uint8Array(0), { usage })];
    finished = true;
    return [chunk({}, { usage, finishReason: toFinishReason(stopReason) })];
  }

  function conclude(): ReadonlyArray<Piece> {
    if (ended) return [];
    ended = true;
    const usage = finished ? toUsage(counts) : undefined;
    const counted = usage && toEvent(JSON.stringify({ ...shared, choices: [], usage: toOpenAiUsage(usage) }));
    return [
      ...(counted === undefined ? [] : [piece(counted, { usage, usageOnly: true, event: shared })]),
      piece(toEvent('[DONE]'), { done: true }),
    ];
  }

  function chunk(
    delta: object,
    { text = '', finishReason, ...more }: Partial<Piece> & { text?: string; finishReason?: string },
  ): Piece {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason ?? null }];
    return piece(toEvent(`${head}${JSON.stringify(choices)}}`), {
      deltas: text === '' ? 0 : 1,
      outputBytes: bytesIn(text),
      choices: [{ index: 0, finished: finishReason !== undefined }],
      event: shared,
      ...more,
    });
  }
}

/** The chunk up to its choices. */
function headOf(shared: object): string {
  return `${JSON.stringify(shared).slice(0, -1)},"choices":`;
}

function piece(bytes: Uint8Array, more: Partial<Piece>): Piece {
  return { ...EMPTY_PIECE, bytes, ...more };
}
