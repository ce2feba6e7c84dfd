// Chunks of a chat completion as the events of a streamed message: zero, one or several events for a chunk.
import { listOf, member, textOf } from '#core/json/json.ts';
import type { Usage } from '#core/money/usage.ts';
import { toPiece } from '../chat/openai-stream.ts';
import { EMPTY_PIECE, ENDED_ANSWER, OPEN_ANSWER, type Piece, type ReplyOptions, type StreamReader } from '../codec.ts';
import { createEventReader } from '../streams/event-reader.ts';
import { setPart } from '../streams/parts.ts';
import { toNamedEvent } from '../streams/sse.ts';
import { textIn, toHead, toMessagesUsage, toStopReason } from './openai-reply.ts';

type Event = readonly [type: string, more: object];

export function createReader({ resizePending }: Pick<ReplyOptions, 'resizePending'> = {}): StreamReader {
  /** Blocks of tool calls, by the provider's index of the call. */
  const calls = new Map<unknown, number>();
  let blocks = 0;
  let open: { readonly index: number; readonly isText: boolean } | undefined;
  let hasBegun = false;
  let hasEnded = false;
  let finishReason: unknown;
  let usage: Usage | undefined;
  let output = 0;

  return createEventReader(resizePending, read, () => (finishReason === undefined ? [] : conclude()));

  function read(bytes: Uint8Array): ReadonlyArray<Piece> {
    const piece = toPiece(bytes);
    if (piece.error !== undefined) return [{ ...EMPTY_PIECE, error: piece.error }];
    if (piece.done) return conclude();
    usage = piece.usage ?? usage;
    output += piece.deltas;
    const { event, deltas, outputBytes, media, usageOnly } = piece;
    // Comments pass; other events do not belong to this API.
    if (event === undefined)
      return [{ ...EMPTY_PIECE, bytes: isComment(bytes) ? bytes : EMPTY_PIECE.bytes, outputBytes }];
    const events = hasEnded ? [] : toEvents(event);
    const choices = finishReason === undefined ? OPEN_ANSWER : ENDED_ANSWER;
    const counted = { deltas, outputBytes, media, usage: piece.usage, usageOnly, choices };
    const [first, ...others] = events;
    if (first === undefined) return [{ ...EMPTY_PIECE, ...counted, event }];
    return [{ ...toShown(first), ...counted }, ...others.map(toShown)];
  }

  function toEvents(chunk: unknown): ReadonlyArray<Event> {
    const choice = listOf(member(chunk, 'choices')).find((one) => (member(one, 'index') ?? 0) === 0);
    if (choice === undefined) return [];
    const delta = member(choice, 'delta');
    const events = [...begin(chunk), ...addText(textIn(delta)), ...listOf(member(delta, 'tool_calls')).flatMap(call)];
    finishReason = textOf(member(choice, 'finish_reason')) ?? finishReason;
    return events;
  }

  function begin(chunk: unknown): ReadonlyArray<Event> {
    if (hasBegun) return [];
    hasBegun = true;
    const rest = { content: [], stop_reason: null, stop_sequence: null, usage: toMessagesUsage(undefined, 0) };
    return [['message_start', { message: { ...toHead(chunk), ...rest } }]];
  }

  function addText(text: string): ReadonlyArray<Event> {
    if (text === '') return [];
    const opened = open?.isText === true ? [] : start({ type: 'text', text: '' });
    return [...opened, ['content_block_delta', { index: blocks - 1, delta: { type: 'text_delta', text } }]];
  }

  /**
   * The events of a piece of a call; a call begins with its first piece. Its index may be missing if calls arrive one
   * by one.
   */
  function call(piece: unknown, at: number): ReadonlyArray<Event> {
    const key = member(piece, 'index') ?? textOf(member(piece, 'id')) ?? at;
    const called = member(piece, 'function');
    const events: Event[] = [];
    if (!calls.has(key)) {
      const id = textOf(member(piece, 'id')) ?? `call_${calls.size}`;
      events.push(...start({ type: 'tool_use', id, name: textOf(member(called, 'name')) ?? '', input: {} }));
      setPart(calls, key, blocks - 1);
    }
    const json = textOf(member(called, 'arguments')) ?? '';
    const delta = { index: calls.get(key), delta: { type: 'input_json_delta', partial_json: json } };
    return json === '' ? events : [...events, ['content_block_delta', delta]];
  }

  function start(content_block: Readonly<Record<string, unknown>>): ReadonlyArray<Event> {
    const closed = close();
    open = { index: blocks, isText: content_block.type === 'text' };
    blocks += 1;
    return [...closed, ['content_block_start', { index: open.index, content_block }]];
  }

  function close(): ReadonlyArray<Event> {
    if (open === undefined) return [];
    const { index } = open;
    open = undefined;
    return [['content_block_stop', { index }]];
  }

  function conclude(): ReadonlyArray<Piece> {
    if (hasEnded) return [];
    hasEnded = true;
    const delta = { stop_reason: toStopReason(finishReason, calls.size > 0), stop_sequence: null };
    const counts: Event = ['message_delta', { delta, usage: toMessagesUsage(usage, output) }];
    const last = { ...EMPTY_PIECE, bytes: toNamedEvent('message_stop', {}), done: true };
    return [...begin(undefined), ...close(), counts].map(toShown).concat(last);
  }
}

function toShown([type, more]: Event): Piece {
  return { ...EMPTY_PIECE, bytes: toNamedEvent(type, more), event: { type, ...more } };
}

function isComment(bytes: Uint8Array): boolean {
  return bytes[0] === 0x3a;
}
