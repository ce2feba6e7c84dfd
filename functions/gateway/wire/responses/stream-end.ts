// Ends of streamed responses that the upstream did not send: an error, or a cut at the hold.

import { type Failure, toReply } from '#core/failure/failure.ts';
import { concat } from '#core/json/bytes.ts';
import { countIn, member, textOf } from '#core/json/json.ts';
import type { Tokens } from '#core/ports/ledger-rows.ts';
import type { FailedPiece, StreamEnd } from '../codec.ts';
import { toShownError } from '../streams/provider-error.ts';
import { toNamedEvent } from '../streams/sse.ts';

/** One part of a message that is being streamed. */
interface Part {
  text: string;
  isClosed: boolean;
}

/** An output item that the client has seen. */
interface Item {
  item: unknown;
  readonly parts: Map<number, Part>;
  isDone: boolean;
}

/** A stream so far, as far as its end must repeat it. */
interface Begun {
  response: object;
  sequence: number;
  readonly items: Map<number, Item>;
}

/** A response that has used up its hold is incomplete, as at the client's own limit: open messages are closed, calls are left out. */
export function createEnd(): StreamEnd {
  const begun: Begun = { response: { object: 'response' }, sequence: -1, items: new Map() };
  return {
    note: ({ frame }) => note(begun, frame),
    fail: (failure) => fail(begun, failure),
    pass: (piece) => pass(begun, piece),
    cut: (_, tokens) => cut(begun, tokens),
  };
}

function note(begun: Begun, event: unknown): void {
  begun.sequence = countIn(event, 'sequence_number') ?? begun.sequence;
  const response = member(event, 'response');
  if (typeof response === 'object' && response !== null) begun.response = response;
  const index = countIn(event, 'output_index');
  if (index === undefined) return;
  const item = begun.items.get(index) ?? { item: member(event, 'item'), parts: new Map(), isDone: false };
  begun.items.set(index, item);
  const type = member(event, 'type');
  if (type === 'response.output_item.done') Object.assign(item, { item: member(event, 'item'), isDone: true });
  if (type === 'response.output_text.delta') partOf(item, event).text += textOf(member(event, 'delta')) ?? '';
  if (type === 'response.content_part.done') partOf(item, event).isClosed = true;
}

function partOf({ parts }: Item, event: unknown): Part {
  const index = countIn(event, 'content_index') ?? 0;
  const part = parts.get(index) ?? { text: '', isClosed: false };
  parts.set(index, part);
  return part;
}

function fail(begun: Begun, failure: Failure): Uint8Array {
  const { message } = toReply(failure).error;
  const response = { ...begun.response, status: 'failed', error: { code: 'server_error', message } };
  return toNamedEvent('response.failed', { sequence_number: begun.sequence + 1, response });
}

/** A client that knows no `error` waits for the last event of a response, so that one follows. */
function pass(begun: Begun, { error, frame }: FailedPiece): Uint8Array {
  note(begun, { sequence_number: begun.sequence + 1, ...Object(frame) });
  const { message, code = 'server_error', param = null } = toShownError(error);
  const sequence_number = begun.sequence;
  const response = { ...begun.response, status: 'failed', error: { code, message } };
  if (member(frame, 'type') === 'response.failed')
    return toNamedEvent('response.failed', { sequence_number, response });
  return concat([
    toNamedEvent('error', { sequence_number, code, message, param }),
    toNamedEvent('response.failed', { sequence_number: sequence_number + 1, response }),
  ]);
}

function cut(begun: Begun, tokens: Tokens): ReadonlyArray<Uint8Array> {
  const events: Array<[type: string, more: object]> = [];
  const output: unknown[] = [];
  for (const [index, item] of begun.items) {
    if (item.isDone) output.push(item.item);
    else if (member(item.item, 'type') === 'message') output.push(close(item, index, events));
  }
  const { input, output: written, cachedInput } = tokens;
  const usage = {
    ...{ input_tokens: input, input_tokens_details: { cached_tokens: cachedInput } },
    ...{ output_tokens: written, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: input + written },
  };
  const reason = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
  events.push(['response.incomplete', { response: { ...begun.response, ...reason, output, usage } }]);
  return events.map(([type, more], at) => toNamedEvent(type, { sequence_number: begun.sequence + 1 + at, ...more }));
}

/** Closes a message with the events that close it at its limit, and returns it. */
function close({ item, parts }: Item, output_index: number, events: Array<[string, object]>): object {
  const content = [...parts].map(([content_index, { text, isClosed }]) => {
    const part = { type: 'output_text', text, annotations: [], logprobs: [] };
    const at = { item_id: member(item, 'id'), output_index, content_index };
    if (!isClosed) events.push(['response.output_text.done', { ...at, text, logprobs: [] }]);
    if (!isClosed) events.push(['response.content_part.done', { ...at, part }]);
    return part;
  });
  const whole = { ...Object(item), status: 'incomplete', content };
  events.push(['response.output_item.done', { output_index, item: whole }]);
  return whole;
}
