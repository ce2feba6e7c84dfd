// Dialects of the sample upstream: how a request is read, and how a reply, a stream or an error is written.
import * as z from 'zod';
import { type Completion, CompletionRequest, type Usage } from './completion.ts';

export interface Dialect {
  /** Reads a request as one of chat completions. */
  readonly request: z.ZodType<CompletionRequest>;
  toReply(completion: Completion): object;
  toStream(completion: Completion): Events;
  toError(status: number, code: string, message: string): object;
}

/** Texts of server-sent events. */
export interface Events {
  readonly first: string;
  token(text: string): string;
  readonly last: string;
  /** The usage that the stream reports. */
  readonly usage: Usage | undefined;
}

/** OpenAI's chat completions: a token in each event, `usage` in a last one where the request asks for that. */
export const openai: Dialect = {
  request: CompletionRequest,

  toReply: ({ frame, tokens, finish, answers, usage }) => {
    const message = { role: 'assistant', content: tokens.join(''), refusal: null };
    const choices = answers.map((index) => ({ index, message, logprobs: null, finish_reason: finish }));
    return { ...frame, object: 'chat.completion', choices, usage };
  },

  toStream: ({ frame, finish, answers, usage, includeUsage }) => {
    const base = { ...frame, object: 'chat.completion.chunk' };
    const chunk = (delta: object, finish_reason: string | null) =>
      answers
        .map((index) => ({ index, delta, logprobs: null, finish_reason }))
        .map((choice) => data({ ...base, choices: [choice], ...(includeUsage ? { usage: null } : {}) }))
        .join('');
    const reported = includeUsage ? usage : undefined;
    const count = reported === undefined ? '' : data({ ...base, choices: [], usage: reported });
    return {
      first: chunk({ role: 'assistant', content: '' }, null),
      token: (content) => chunk({ content }, null),
      last: `${chunk({}, finish)}${count}data: [DONE]\n\n`,
      usage: reported,
    };
  },

  toError: (status, code, message) => {
    const type = status >= 500 ? 'server_error' : 'invalid_request_error';
    return { error: { message, type, param: null, code } };
  },
};

const data = (content: object) => `data: ${JSON.stringify(content)}\n\n`;

const MessagesRequest = z
  .object({
    model: z.string().min(1),
    max_tokens: z.int().min(1),
    system: z.unknown().optional(),
    messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant']), content: z.unknown() })).min(1),
    stream: z.boolean().optional(),
  })
  .transform(({ system, messages, ...request }) => ({
    ...request,
    messages: system === undefined ? messages : [{ role: 'system', content: system }, ...messages],
  }));

/** Anthropic's Messages: the prompt is counted in the first event, the answer in the last but one. */
export const anthropic: Dialect = {
  request: MessagesRequest,

  toReply: (completion) => {
    const content = [{ type: 'text', text: completion.tokens.join('') }];
    return { ...toMessage(completion), content, ...toStop(completion), usage: toUsage(completion.usage) };
  },

  toStream: (completion) => {
    const { usage } = completion;
    const begun = usage && { ...toUsage(usage), output_tokens: 1 };
    const counted = usage && { output_tokens: usage.completion_tokens };
    const message = { ...toMessage(completion), content: [], stop_reason: null, usage: begun };
    const block = { index: 0, content_block: { type: 'text', text: '' } };
    const delta = { delta: toStop(completion), usage: counted };
    return {
      first: `${event('message_start', { message })}${event('content_block_start', block)}${event('ping', {})}`,
      token: (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
      last: `${event('content_block_stop', { index: 0 })}${event('message_delta', delta)}${event('message_stop', {})}`,
      usage,
    };
  },

  toError: (status, _code, message) => ({ type: 'error', error: { type: ERRORS.get(status) ?? 'api_error', message } }),
};

const ERRORS: ReadonlyMap<number, string> = new Map([
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

const event = (type: string, more: object) => `event: ${type}\n${data({ type, ...more })}`;
