// Ends of chat completion streams that the upstream did not send: an error, or a cut at the reservation.
import { type Failure, toReply } from '#core/failure/failure.ts';
import { member, textOf } from '#core/json/json.ts';
import type { EndWriter, ShownError } from '../codec.ts';
import type { ModelRequest } from '../request.ts';
import { toEvent } from '../streams/sse.ts';

/** The maximum length of a repeated member; names and ids are shorter. */
const MAX_TEXT = 1024;

/** The event of a failure, without a `[DONE]` after it. */
function toFailureEvent(failure: Failure): Uint8Array {
  return toEvent(JSON.stringify({ error: toReply(failure).error }));
}

/** The event of a provider's error. Without a type, it is an error of the server. */
function toErrorEvent({ message, type = 'server_error', code, param }: ShownError): Uint8Array {
  return toEvent(JSON.stringify({ error: { message, type, param: param ?? null, code: code ?? null } }));
}

/** The end of a stream. At its reservation, every open answer ends with `length`, as at the client's own limit. */
export function createEndWriter({ includeUsage }: Pick<ModelRequest, 'includeUsage'>): EndWriter {
  let shared: object | undefined;
  return {
    record: ({ event }) => {
      if (event !== undefined) shared ??= sharedIn(event);
    },
    toFailureEvent,
    toErrorEvent,
    toCutEvents: (open, tokens) => {
      const ended = open.length > 0 ? open : [0];
      const choices = ended.map((index) => ({ index, delta: {}, finish_reason: 'length' }));
      const usage = {
        prompt_tokens: tokens.input,
        completion_tokens: tokens.output,
        total_tokens: tokens.input + tokens.output,
      };
      return [
        toEvent(JSON.stringify({ ...shared, choices })),
        ...(includeUsage ? [toEvent(JSON.stringify({ ...shared, choices: [], usage }))] : []),
        toEvent('[DONE]'),
      ];
    },
  };
}

/** The members that all chunks of a stream share; the first chunk may repeat the prompt. */
function sharedIn(chunk: unknown): object {
  const names = ['id', 'object', 'created', 'model'];
  const isShort = (value: unknown) => typeof value === 'number' || (textOf(value)?.length ?? MAX_TEXT) < MAX_TEXT;
  return Object.fromEntries(names.map((name) => [name, member(chunk, name)]).filter(([, value]) => isShort(value)));
}
