// Anthropic's messages as chat completions: whole replies, and the stop reasons and counts that streams need too.

import { member, textOf } from '#core/json/json.ts';
import type { Usage } from '#core/money/usage.ts';
import type { Reply } from '../codec.ts';
import { addUsage, toUsage } from '../dialects/anthropic-dialect.ts';
import { bytesIn } from '../prompt/prompt.ts';

const FINISH_REASONS: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

/**
 * The message as a completion; undefined: it is no message. Text blocks become one text, `thinking` blocks become
 * `reasoning_content`.
 */
export function toCompletion(message: unknown, created: number): Reply | undefined {
  const blocks = member(message, 'content');
  if (!Array.isArray(blocks)) return undefined;
  const text = joinTexts(blocks, 'text', 'text');
  const reasoning = joinTexts(blocks, 'thinking', 'thinking');
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
          reasoning_content: reasoning || undefined,
          tool_calls: calls.length === 0 ? undefined : calls,
        },
        logprobs: null,
        finish_reason: stopReason === undefined ? 'stop' : toFinishReason(stopReason),
      },
    ],
    usage: usage && toOpenAiUsage(usage),
  };
  const called = calls.map(({ function: { name, arguments: given } }) => name + given).join('');
  // Anthropic sends no media.
  const size = () => ({ outputBytes: bytesIn(text + reasoning + called), media: 0 });
  return { body: JSON.stringify(completion), usage, size };
}

/** The finish reason. An unknown stop reason ends the answer too. */
export function toFinishReason(stopReason: string): string {
  return FINISH_REASONS.get(stopReason) ?? 'stop';
}

function joinTexts(blocks: ReadonlyArray<unknown>, type: string, name: string): string {
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

/** The `usage` object that a client of OpenAI's API expects. */
export function toOpenAiUsage({ input, output, cachedInput, cacheWrite }: Usage): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cachedInput, cache_write_tokens: cacheWrite },
  };
}
