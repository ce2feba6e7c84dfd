// How many tokens does Anthropic say it used? Its `input_tokens` leave out what was read from and written to the cache; ours do not.
import type { Usage } from '#core/usage.ts';
import { member } from './json.ts';

/** Counts as they came so far. A stream tells some of them first and others last; of each the last word counts. */
export interface MessagesUsage {
  readonly input?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** Of `cacheWrite`: for an hour. */
  readonly cacheWriteLong?: number;
  readonly output?: number;
}

/** What was known, and what this `usage` object says anew. */
export function addUsage(known: MessagesUsage, usage: unknown): MessagesUsage {
  return {
    ...known,
    ...counted('input', member(usage, 'input_tokens')),
    ...counted('cacheRead', member(usage, 'cache_read_input_tokens')),
    ...counted('cacheWrite', member(usage, 'cache_creation_input_tokens')),
    ...counted('cacheWriteLong', member(member(usage, 'cache_creation'), 'ephemeral_1h_input_tokens')),
    ...counted('output', member(usage, 'output_tokens')),
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
    ...(cacheWriteLong === 0 ? {} : { cacheWriteLong }),
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

function counted(name: keyof MessagesUsage, value: unknown): MessagesUsage {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? { [name]: value } : {};
}
