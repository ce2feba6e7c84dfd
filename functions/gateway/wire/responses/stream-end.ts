// Ends of streamed responses that the upstream did not send: an error, or a cut at the reservation.

import { type Failure, toReply } from '#core/failure/failure.ts';
import { concat } from '#core/json/bytes.ts';
import { countIn, member, parseJson, textOf, toJson } from '#core/json/json.ts';
import type { Tokens } from '#core/ports/ledger-rows.ts';
import type { EndWriter, ShownError } from '../codec.ts';
import { toNamedEvent } from '../streams/sse.ts';

/**
 * The maximum size of the output that a stream keeps for its end: its characters, and `PART_OVERHEAD` for each item and
 * part. The end of a longer stream repeats nothing.
 */
const MAX_KEPT = 64 * 1024;
const PART_OVERHEAD = 256;
/** The maximum number of deltas before they are joined: each takes several times its characters. */
const MAX_PIECES = 64;
/**
 * The maximum number of short members that are kept: a response repeats its request, with `instructions` and `tools`.
 */
const MAX_MEMBERS = 64;
const MAX_TEXT = 256;

/** One part of a streamed message. */
interface Part {
  readonly texts: string[];
  isClosed: boolean;
}

/** An output item that the client has seen. */
interface Item {
  /** The item as JSON; undefined: it is no message, and not done. */
  json: string | undefined;
  readonly parts: Map<number, Part>;
  isDone: boolean;
}

/** The state of a stream that its end must repeat. */
interface StreamState {
  response: object;
  sequence: number;
  readonly items: Map<number, Item>;
  /** The size of the items; above `MAX_KEPT` they are dropped. */
  kept: number;
}

/**
 * The end of a stream. At its reservation the response is incomplete, as at the client's own limit: open messages are
 * closed, calls are left out.
 */
export function createEndWriter(): EndWriter {
  const state: StreamState = { response: { object: 'response' }, sequence: -1, items: new Map(), kept: 0 };
  return {
    record: ({ event }) => recordEvent(state, event),
    toFailureEvent: (failure) => toFailureEvent(state, failure),
    toErrorEvent: (error, event) => toErrorEvents(state, error, event),
    toCutEvents: (_, tokens) => toCutEvents(state, tokens),
  };
}

function recordEvent(state: StreamState, event: unknown): void {
  state.sequence = countIn(event, 'sequence_number') ?? state.sequence;
  const response = member(event, 'response');
  if (typeof response === 'object' && response !== null) state.response = shortMembersOf(response);
  const index = countIn(event, 'output_index');
  if (index !== undefined && state.kept <= MAX_KEPT) recordItem(state, index, event);
}

/** The short members: the id, the model, the settings. */
function shortMembersOf(response: object): object {
  const isShort = (value: unknown) =>
    typeof value === 'string' ? value.length <= MAX_TEXT : Object(value) !== value || isEmptyList(value);
  return Object.fromEntries(
    Object.entries(response)
      .filter(([name, value]) => name.length <= MAX_TEXT && isShort(value))
      .slice(0, MAX_MEMBERS),
  );
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

function recordItem(state: StreamState, index: number, event: unknown): void {
  const known = state.items.get(index);
  const item: Item = known ?? { json: undefined, parts: new Map(), isDone: false };
  if (known === undefined) {
    state.items.set(index, item);
    state.kept += PART_OVERHEAD;
  }
  const [type, written] = [member(event, 'type'), member(event, 'item')];
  const isDone = type === 'response.output_item.done';
  if (isDone || (known === undefined && member(written, 'type') === 'message')) {
    item.json = toJson(written);
    state.kept += item.json?.length ?? 0;
  }
  if (isDone) Object.assign(item, { isDone, parts: new Map() });
  if (type === 'response.output_text.delta')
    add(state, partOf(state, item, event), textOf(member(event, 'delta')) ?? '');
  if (type === 'response.content_part.done') partOf(state, item, event).isClosed = true;
  if (state.kept > MAX_KEPT) state.items.clear();
}

function add(state: StreamState, { texts }: Part, text: string): void {
  state.kept += text.length;
  texts.push(text);
  if (texts.length > MAX_PIECES) texts.splice(0, texts.length, texts.join(''));
}

function partOf(state: StreamState, { parts }: Item, event: unknown): Part {
  const index = countIn(event, 'content_index') ?? 0;
  const known = parts.get(index);
  if (known !== undefined) return known;
  const part = { texts: [], isClosed: false };
  parts.set(index, part);
  state.kept += PART_OVERHEAD;
  return part;
}

function toFailureEvent(state: StreamState, failure: Failure): Uint8Array {
  const { message } = toReply(failure).error;
  const response = { ...state.response, status: 'failed', error: { code: 'server_error', message } };
  return toNamedEvent('response.failed', { sequence_number: state.sequence + 1, response });
}

/**
 * The events of a provider's error. A client that does not know `error` waits for the last event of a response, so that
 * one follows.
 */
function toErrorEvents(
  state: StreamState,
  { message, code = 'server_error', param }: ShownError,
  event: unknown,
): Uint8Array {
  recordEvent(state, { sequence_number: state.sequence + 1, ...Object(event) });
  const sequence_number = state.sequence;
  // The provider's own last response is passed whole, unless it is nested too deeply to be written.
  const own = member(event, 'response');
  // The event that holds the response is one level deeper. A second level covers a stack that has less room by then.
  const last = own === undefined || toJson([[own]]) === undefined ? state.response : own;
  const response = { ...Object(last), status: 'failed', error: { code, message } };
  if (member(event, 'type') === 'response.failed')
    return toNamedEvent('response.failed', { sequence_number, response });
  return concat([
    toNamedEvent('error', { sequence_number, code, message, param: param ?? null }),
    toNamedEvent('response.failed', { sequence_number: sequence_number + 1, response }),
  ]);
}

function toCutEvents(state: StreamState, tokens: Tokens): ReadonlyArray<Uint8Array> {
  const events: Array<[type: string, more: object]> = [];
  const output: unknown[] = [];
  for (const [index, item] of state.items) {
    const written = item.json === undefined ? undefined : parseJson(item.json);
    if (item.isDone) output.push(written);
    else if (written !== undefined) output.push(close(written, { item, index }, events));
  }
  const { input, output: written, cachedInput } = tokens;
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cachedInput },
    output_tokens: written,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + written,
  };
  const reason = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
  events.push(['response.incomplete', { response: { ...state.response, ...reason, output, usage } }]);
  return events.map(([type, more], at) => toNamedEvent(type, { sequence_number: state.sequence + 1 + at, ...more }));
}

/** Closes a message with the events that close it at its limit, and returns it. */
function close(
  message: unknown,
  { item: { parts }, index: output_index }: { readonly item: Item; readonly index: number },
  events: Array<[string, object]>,
): object {
  const content = [...parts].map(([content_index, { texts, isClosed }]) => {
    const text = texts.join('');
    const part = { type: 'output_text', text, annotations: [], logprobs: [] };
    const at = { item_id: member(message, 'id'), output_index, content_index };
    if (!isClosed) events.push(['response.output_text.done', { ...at, text, logprobs: [] }]);
    if (!isClosed) events.push(['response.content_part.done', { ...at, part }]);
    return part;
  });
  const whole = { ...Object(message), status: 'incomplete', content };
  events.push(['response.output_item.done', { output_index, item: whole }]);
  return whole;
}
