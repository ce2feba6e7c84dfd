// Completions of the sample upstream: equal requests get equal completions. A word is a token.
import { createHash } from 'node:crypto';
import * as z from 'zod';
import { BEHAVIOURS, type Behaviour, WELL_BEHAVED } from './behaviours.ts';

const Limit = z.int().min(0).nullish();

export const CompletionRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().min(1).max(128).nullish(),
  max_tokens: Limit,
  max_completion_tokens: Limit,
});
export type CompletionRequest = z.infer<typeof CompletionRequest>;

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

export interface Completion {
  readonly behaviour: Behaviour;
  readonly frame: { readonly id: string; readonly created: number; readonly model: string };
  readonly tokens: ReadonlyArray<string>;
  readonly finish: 'stop' | 'length';
  /** Indexes of the answers. */
  readonly answers: ReadonlyArray<number>;
  /** Whether a stream reports its usage, in dialects where the request decides. */
  readonly includeUsage: boolean;
  /** Absent: this model reports none. */
  readonly usage: Usage | undefined;
}

/** `created` is in seconds, and the only member that differs between two answers to the same request. */
export function complete(request: CompletionRequest, created: number): Completion {
  const behaviour = BEHAVIOURS.get(request.model) ?? WELL_BEHAVED;
  const words = say(request, behaviour);
  const limit = behaviour.chatter ?? request.max_completion_tokens ?? request.max_tokens ?? words.length;
  const tokens = words.slice(0, limit);
  const answers = request.n ?? 1;
  const prompt = request.messages.reduce((sum, { content }) => sum + 4 + Math.ceil(textOf(content).length / 4), 3);
  const completion = tokens.length * answers;
  const id = `chatcmpl-${createHash('sha256').update(JSON.stringify(request)).digest('hex').slice(0, 24)}`;
  return {
    behaviour,
    frame: { id, created, model: request.model },
    tokens,
    finish: tokens.length < words.length ? 'length' : 'stop',
    answers: [...Array(answers).keys()],
    includeUsage: request.stream_options?.include_usage === true,
    usage: behaviour.withoutUsage
      ? undefined
      : { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  };
}

function say(request: CompletionRequest, { chatter }: Behaviour): ReadonlyArray<string> {
  if (chatter !== undefined) return Array.from({ length: chatter }, (_, index) => `${index === 0 ? '' : ' '}word`);
  const last = textOf(request.messages.findLast(({ role }) => role === 'user')?.content);
  const text = request.model === 'echo' ? last : `This is the sample upstream. You said: ${last}`;
  return text.match(/\s*\S+/g) ?? ['(nothing)'];
}

/** The text of a content: itself, or that of its parts. */
function textOf(content: unknown): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : '';
  return content.map((part: { readonly text?: unknown } | null) => textOf(part?.text)).join(' ');
}
