// Anthropic's messages as chat completions: whole ones, and what streams share with them, stop reasons, counts of tokens and errors.

import { countIn, member, textOf } from '#core/json.ts';
import type { Usage } from '#core/usage.ts';
import type { Reply, Seconds, WireError } from '../codec.ts';
import { bytesIn } from '../prompt.ts';

const FINISH_REASONS: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

/** The message as a completion; undefined when it is no message. Text blocks become one text, thinking `reasoning_content`. */
export function toCompletion(message: unknown, created: Seconds): Reply | undefined {
  const blocks = member(message, 'content');
  if (!Array.isArray(blocks)) return undefined;
  const text = joined(blocks, 'text', 'text');
  const thoughts = joined(blocks, 'thinking', 'thinking');
  const calls = blocks.filter((block) => member(block, 'type') === 'tool_use').map(toToolCall);
  const usage = toUsage(addUsage({}, member(message, 'usage')));
  const stopReason = textOf(member(message, 'stop_reason'));
  const completion = {
    id: member(message, 'id'),
    object: 'chat.completion',
    created,
    model: member(message, 'model'),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && calls.length > 0 ? null : text,
          refusal: null,
          reasoning_content: thoughts || undefined,
          tool_calls: calls.length === 0 ? undefined : calls,
        },
        logprobs: null,
        finish_reason: stopReason === undefined ? 'stop' : toFinishReason(stopReason),
      },
    ],
    usage: usage && toOpenAiUsage(usage),
  };
  const called = calls.map(({ function: { name, arguments: given } }) => name + given).join('');
  // Anthropic sends no sound.
  const size = () => ({ outputBytes: bytesIn(text + thoughts + called), sound: 0 });
  return { body: JSON.stringify(completion), usage, size };
}

/** The finish reason. A stop reason that is new to us ends the answer too. */
export function toFinishReason(stopReason: string): string {
  return FINISH_REASONS.get(stopReason) ?? 'stop';
}

function joined(blocks: ReadonlyArray<unknown>, type: string, name: string): string {
  return blocks
    .filter((block) => member(block, 'type') === type)
    .map((block) => textOf(member(block, name)) ?? '')
    .join('');
}

function toToolCall(block: unknown) {
  return {
    id: textOf(member(block, 'id')) ?? '',
    type: 'function',
    function: {
      name: textOf(member(block, 'name')) ?? '',
      arguments: JSON.stringify(member(block, 'input') ?? {}),
    },
  };
}

/** Counts so far. A stream sends some of them first and others last; the last value of each counts. */
export type MessagesUsage = {
  readonly [side in 'input' | 'cacheRead' | 'cacheWrite' | 'cacheWriteLong' | 'output']?: number | undefined;
};

/** Known counts, and those that this `usage` object adds or replaces. */
export function addUsage(known: MessagesUsage, usage: unknown): MessagesUsage {
  return {
    input: countIn(usage, 'input_tokens') ?? known.input,
    cacheRead: countIn(usage, 'cache_read_input_tokens') ?? known.cacheRead,
    cacheWrite: countIn(usage, 'cache_creation_input_tokens') ?? known.cacheWrite,
    cacheWriteLong: countIn(member(usage, 'cache_creation'), 'ephemeral_1h_input_tokens') ?? known.cacheWriteLong,
    output: countIn(usage, 'output_tokens') ?? known.output,
  };
}

/** Undefined until both sides were counted. */
export function toUsage(counted: MessagesUsage): Usage | undefined {
  const { input, output, cacheRead = 0, cacheWrite = 0, cacheWriteLong = 0 } = counted;
  if (input === undefined || output === undefined) return undefined;
  return {
    input: input + cacheRead + cacheWrite,
    output,
    cachedInput: cacheRead,
    cacheWrite,
    cacheWriteLong: cacheWriteLong || undefined,
  };
}

/** The `usage` object that a client of OpenAI's API expects. */
export function toOpenAiUsage({ input, output, cachedInput, cacheWrite }: Usage): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cachedInput, cache_write_tokens: cacheWrite },
  };
}

/** The status each kind of error has outside of a stream (platform.claude.com/docs/en/api/errors). */
const ANTHROPIC_STATUSES: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

/** `{"type": "error", "error": {"type", "message"}}`. Total: a proxy's error page is an error without words. */
export function anthropicError(body: unknown): WireError {
  const error = member(body, 'error');
  const code = textOf(member(error, 'type'));
  return {
    message: textOf(member(error, 'message')) ?? textOf(error),
    param: undefined,
    code,
    status: code === undefined ? undefined : ANTHROPIC_STATUSES.get(code),
  };
}
