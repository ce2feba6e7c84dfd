// Stream ends that the upstream did not send: an error, or a cut at the hold, in OpenAI's dialect.
import { type Failure, toReply } from '#core/failure.ts';
import { member } from '#core/json.ts';
import type { Tokens } from '#core/ports/books.ts';
import { toEvent } from './sse.ts';

/** The end of a reply. */
export type ReplyEnd = 'complete' | 'cut' | 'broken' | 'left' | 'timeout';

/** A stream so far. */
interface Begun {
  /** Answers that began and have not ended. */
  readonly open: ReadonlyArray<number>;
  /** One of its chunks. */
  readonly frame: unknown;
}

/** An error in the stream; no `[DONE]` follows, so that no client takes the reply for a whole one. */
export function errorEvent(failure: Failure): Uint8Array {
  return toEvent(JSON.stringify({ error: toReply(failure).error }));
}

/** The events that report the end of the stream. */
export function endEvents(end: Exclude<ReplyEnd, 'cut'>): ReadonlyArray<Uint8Array> {
  if (end === 'broken') return [errorEvent({ code: 'upstream_error' })];
  return end === 'timeout' ? [errorEvent({ code: 'upstream_timeout' })] : [];
}

/** The end of a stream that has used up its hold: every open answer ends by `length`, as at the client's own limit. */
export function lengthEnd({ frame, open }: Begun, tokens: Tokens, includeUsage: boolean): ReadonlyArray<Uint8Array> {
  const [id, object, created, model] = ['id', 'object', 'created', 'model'].map((name) => member(frame, name));
  const shared = { id, object, created, model };
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
}
