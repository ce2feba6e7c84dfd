// OpenAI's Responses API of the sample upstream: named and numbered events, with the whole response in the last event.
import * as z from 'zod';
import type { Completion, Usage } from './completion.ts';
import { type Dialect, openai } from './dialects.ts';

const Item = z.looseObject({ role: z.string().optional(), content: z.unknown() });

const ResponsesRequest = z
  .looseObject({
    model: z.string().min(1),
    instructions: z.string().nullish(),
    input: z.union([z.string(), z.array(Item).min(1)]),
    max_output_tokens: z.int().min(1).nullish(),
    stream: z.boolean().nullish(),
  })
  .transform(({ instructions, input, max_output_tokens, model, stream }) => {
    const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
    const messages = items.map(({ role = 'tool', content }) => ({ role, content }));
    const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
    return { model, stream, max_completion_tokens: max_output_tokens, messages: [...system, ...messages] };
  });

export const responses: Dialect = {
  request: ResponsesRequest,
  toReply: (completion) => toResponse(completion, [toMessage(completion)]),

  toStream: (completion) => {
    const begun = toResponse({ ...completion, usage: undefined }, []);
    const message = toMessage(completion);
    const [part] = message.content;
    const at = { item_id: message.id, output_index: 0, content_index: 0 };
    let number = -1;
    const event = (type: string, more: object) => {
      number += 1;
      return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...more })}\n\n`;
    };
    const first = [
      event('response.created', { response: { ...begun, status: 'in_progress' } }),
      event('response.output_item.added', {
        output_index: 0,
        item: { ...message, status: 'in_progress', content: [] },
      }),
      event('response.content_part.added', { ...at, part: { ...part, text: '' } }),
    ];
    return {
      first: first.join(''),
      token: (delta) => event('response.output_text.delta', { ...at, delta, logprobs: [] }),
      get last() {
        const whole = toResponse(completion, [message]);
        const last = [
          event('response.output_text.done', { ...at, text: part?.text, logprobs: [] }),
          event('response.content_part.done', { ...at, part }),
          event('response.output_item.done', { output_index: 0, item: message }),
          event(`response.${whole.status}`, { response: whole }),
        ];
        return last.join('');
      },
      usage: completion.usage,
    };
  },

  toError: openai.toError,
};

function toMessage({ frame, tokens, finish }: Completion) {
  const content = [{ type: 'output_text', text: tokens.join(''), annotations: [], logprobs: [] }];
  const status = finish === 'length' ? 'incomplete' : 'completed';
  return { id: frame.id.replace('chatcmpl-', 'msg_'), type: 'message', role: 'assistant', status, content };
}

function toResponse({ frame, finish, usage }: Completion, output: ReadonlyArray<object>) {
  const isCut = finish === 'length';
  return {
    id: frame.id.replace('chatcmpl-', 'resp_'),
    object: 'response',
    created_at: frame.created,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    error: null,
    model: frame.model,
    output,
    parallel_tool_calls: true,
    store: false,
    tools: [],
    usage: usage && toUsage(usage),
  };
}

function toUsage({ prompt_tokens: input_tokens, completion_tokens: output_tokens, total_tokens }: Usage) {
  return {
    input_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens,
  };
}
