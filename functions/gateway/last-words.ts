// How does a stream end that its upstream did not end? In OpenAI's dialect, which is what the client speaks.
import { type Failure, toReply } from '#core/failure.ts';
import type { Tokens } from '#core/ports/books.ts';
import { concat } from './members.ts';
import type { Meter } from './meter.ts';
import type { ReplyEnd } from './record.ts';
import { toEvent } from './wire/sse.ts';

/** An error in the stream; no `[DONE]` follows, so that nobody takes the reply for a whole one. */
export function errorWords(failure: Failure): Uint8Array {
  return toEvent(JSON.stringify({ error: toReply(failure).error }));
}

/** What is said last in a stream that ended so. */
export function endWords(how: Exclude<ReplyEnd, 'cut'>): ReadonlyArray<Uint8Array> {
  return ERRORS[how].map(errorWords);
}

/** The end of a stream that has reached its hold: every open answer ends by `length`, as at a limit of the client's own. */
export function cutWords({ frame, open }: Meter, tokens: Tokens, includeUsage: boolean): Uint8Array {
  const ended = open.length > 0 ? open : [0];
  const choices = ended.map((index) => ({ index, delta: {}, finish_reason: 'length' }));
  const usage = {
    prompt_tokens: tokens.input,
    completion_tokens: tokens.output,
    total_tokens: tokens.input + tokens.output,
  };
  return concat([
    toEvent(JSON.stringify({ ...frame, choices })),
    ...(includeUsage ? [toEvent(JSON.stringify({ ...frame, choices: [], usage }))] : []),
    toEvent('[DONE]'),
  ]);
}

const ERRORS: Readonly<Record<Exclude<ReplyEnd, 'cut'>, ReadonlyArray<Failure>>> = {
  complete: [],
  left: [],
  broken: [{ code: 'upstream_error' }],
  timeout: [{ code: 'upstream_timeout' }],
};
