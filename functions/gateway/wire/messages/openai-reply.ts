// Chat completions as messages: whole replies, and the stop reasons and counts that streams need too.
import { listOf, member, parseJson, textOf } from '#core/json/json.ts';
import { toUsage, type Usage } from '#core/money/usage.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { sizeOf } from '../chat/output-size.ts';
import { argumentsOf, hasTooManyArguments } from '../chat/parts.ts';
import type { Reply } from '../codec.ts';

const STOP_REASONS: ReadonlyMap<unknown, string> = new Map([
  ['stop', 'end_turn'],
  ['length', 'max_tokens'],
  ['tool_calls', 'tool_use'],
  ['function_call', 'tool_use'],
  ['content_filter', 'refusal'],
]);

/**
 * The completion as a message; undefined: it is no completion. Reasoning is left out: it has no signature that Anthropic
 * would accept later.
 */
export function toMessage(completion: unknown): Reply | undefined {
  const choices = member(completion, 'choices');
  if (!Array.isArray(choices)) return undefined;
  const [choice] = choices;
  const answer = member(choice, 'message');
  const text = textIn(answer);
  // No model writes so many values: the provider is broken or hostile.
  if (hasTooManyArguments([answer])) return undefined;
  const calls = listOf(member(answer, 'tool_calls')).map(toToolUse);
  const usage = toUsage(member(completion, 'usage'));
  const message = {
    ...toHead(completion),
    content: [...(text === '' ? [] : [{ type: 'text', text }]), ...calls],
    stop_reason: toStopReason(member(choice, 'finish_reason'), calls.length > 0),
    stop_sequence: null,
    usage: toMessagesUsage(usage, 0),
  };
  return { body: JSON.stringify(message), usage, size: () => sizeOf(choices, 'message') };
}

/** The first members of a message. */
export function toHead(completion: unknown): object {
  const [id, model] = [textOf(member(completion, 'id')) ?? '', textOf(member(completion, 'model')) ?? ''];
  return { id, type: 'message', role: 'assistant', model };
}

/** The text of a message or a delta, and of its refusal. */
export function textIn(message: unknown): string {
  const content = member(message, 'content');
  const parts = listOf(content).map((part) => textOf(member(part, 'text')) ?? '');
  return [textOf(content) ?? parts.join(''), textOf(member(message, 'refusal')) ?? ''].join('');
}

/** The stop reason. Some providers send `stop` after tool calls. An unknown reason ends the answer too. */
export function toStopReason(finishReason: unknown, hasCalled: boolean): string {
  const reason = STOP_REASONS.get(finishReason) ?? 'end_turn';
  return hasCalled && reason === 'end_turn' ? 'tool_use' : reason;
}

/**
 * The `usage` object that a client of Anthropic's API expects. Without a count of the provider, it has the output so
 * far.
 */
export function toMessagesUsage(usage: Usage | undefined, output: number): object {
  const { input = 0, cachedInput = 0, cacheWrite = 0 } = usage ?? {};
  return {
    input_tokens: input - cachedInput - cacheWrite,
    cache_read_input_tokens: cachedInput,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: usage?.output ?? output,
  };
}

function toToolUse(call: unknown, index: number): object {
  const called = member(call, 'function');
  const input = parseJson(argumentsOf(call));
  return {
    type: 'tool_use',
    id: textOf(member(call, 'id')) ?? `call_${index}`,
    name: textOf(member(called, 'name')) ?? '',
    input: isMap(input) ? input : {},
  };
}
