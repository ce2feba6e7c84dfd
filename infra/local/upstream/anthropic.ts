// Anthropic's Messages, as the sample upstream speaks them: the prompt is counted in the first event, the answer in the last but one.
import * as z from 'zod';
import type { Completion, Usage } from './completion.ts';
import type { Dialect } from './dialect.ts';

const MessagesRequest = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  system: z.unknown().optional(),
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant']), content: z.unknown() })).min(1),
  stream: z.boolean().optional(),
});

export const anthropic: Dialect = {
  read: (body) => {
    const parsed = MessagesRequest.safeParse(body);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return { wrong: `${issue?.path.join('.')}: ${issue?.message ?? 'malformed'}` };
    }
    const { model, max_tokens, system, messages, stream } = parsed.data;
    const all = system === undefined ? messages : [{ role: 'system', content: system }, ...messages];
    return { request: { model, max_tokens, messages: all, stream } };
  },

  toReply: (completion) => {
    const content = [{ type: 'text', text: completion.tokens.join('') }];
    return { ...toMessage(completion), content, ...toStop(completion), usage: toUsage(completion.usage) };
  },

  toStream: (completion) => {
    const { usage } = completion;
    const begun = usage && { ...toUsage(usage), output_tokens: 1 };
    const counted = usage && { output_tokens: usage.completion_tokens };
    const message = { ...toMessage(completion), content: [], stop_reason: null, usage: begun };
    return {
      first: [
        event('message_start', { message }),
        event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
        event('ping', {}),
      ].join(''),
      token: (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
      last: [
        event('content_block_stop', { index: 0 }),
        event('message_delta', { delta: toStop(completion), usage: counted }),
        event('message_stop', {}),
      ].join(''),
      usage,
    };
  },

  toError: (status, _code, message) => ({
    type: 'error',
    error: { type: TYPES.get(status) ?? 'api_error', message },
  }),
};

const TYPES: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [404, 'not_found_error'],
  [429, 'rate_limit_error'],
  [529, 'overloaded_error'],
]);

function toMessage({ frame }: Completion): object {
  return { id: frame.id.replace('chatcmpl-', 'msg_'), type: 'message', role: 'assistant', model: frame.model };
}

function toStop({ finish }: Completion): object {
  return { stop_reason: finish === 'length' ? 'max_tokens' : 'end_turn', stop_sequence: null };
}

function toUsage(usage: Usage | undefined): object | undefined {
  if (usage === undefined) return undefined;
  const { prompt_tokens: input_tokens, completion_tokens: output_tokens } = usage;
  return { input_tokens, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens };
}

const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
