// How does the sample upstream speak Anthropic's Messages API? The same answers, in the other dialect.
import type { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import type { Completion, Usage } from './completion.ts';
import { hangUp, open, sendJson, type Wire } from './wire.ts';

const NO_PACE = { first: 0, token: 2 };

const MessagesRequest = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  system: z.unknown().optional(),
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant']), content: z.unknown() })).min(1),
  stream: z.boolean().optional(),
});

export const messages: Wire = {
  read: (body) => {
    const parsed = MessagesRequest.safeParse(body);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return { wrong: `${issue?.path.join('.')}: ${issue?.message ?? 'malformed'}` };
    }
    const { model, max_tokens, system, messages: turns, stream } = parsed.data;
    const told = system === undefined ? turns : [{ role: 'system', content: system }, ...turns];
    return { request: { model, max_tokens, messages: told, stream } };
  },

  toReply: (completion) => {
    const { behaviour, tokens, usage } = completion;
    const content = [{ type: 'text', text: tokens.join('') }];
    const counted = behaviour.withoutUsage ? {} : { usage: toUsage(usage) };
    return { ...toMessage(completion), content, ...toStop(completion), ...counted };
  },

  /** The prompt is counted in the first event, the answer in the last but one. */
  replyStream: async (response, completion, stats) => {
    const { behaviour, frame, tokens, usage } = completion;
    const pace = behaviour.pace ?? NO_PACE;
    await wait(pace.first);
    const out = open(response, behaviour, 'text/event-stream; charset=utf-8');
    const begun = behaviour.withoutUsage ? {} : { usage: { ...toUsage(usage), output_tokens: 1 } };
    event(out, 'message_start', { message: { ...toMessage(completion), content: [], stop_reason: null, ...begun } });
    event(out, 'content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
    event(out, 'ping', {});
    for (const [index, text] of tokens.entries()) {
      if (index === behaviour.cutAfter) return hangUp(response);
      await wait(pace.token);
      if (response.destroyed) return;
      event(out, 'content_block_delta', { index: 0, delta: { type: 'text_delta', text } });
    }
    event(out, 'content_block_stop', { index: 0 });
    const counted = behaviour.withoutUsage ? {} : { usage: { output_tokens: usage.completion_tokens } };
    event(out, 'message_delta', { delta: toStop(completion), ...counted });
    if (!behaviour.withoutUsage) stats.reported(frame.model, usage);
    event(out, 'message_stop', {});
    out.end();
  },

  refuse: (response, status, _code, message) => {
    sendJson(response, status, { type: 'error', error: { type: TYPES.get(status) ?? 'api_error', message } });
  },
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

function toUsage({ prompt_tokens, completion_tokens }: Usage): object {
  return {
    input_tokens: prompt_tokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: completion_tokens,
  };
}

function event(out: Writable, type: string, more: object): void {
  out.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
}
