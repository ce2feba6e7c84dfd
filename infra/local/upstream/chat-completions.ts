// How does the sample upstream speak OpenAI's chat completions API?
import type { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { CompletionRequest } from './completion.ts';
import { hangUp, open, sendJson, type Wire } from './wire.ts';

const NO_PACE = { first: 0, token: 2 };

export const chatCompletions: Wire = {
  read: (body) => {
    const parsed = CompletionRequest.safeParse(body);
    return parsed.success ? { request: parsed.data } : { wrong: parsed.error.issues[0]?.message ?? 'malformed' };
  },

  toReply: ({ behaviour, frame, tokens, finish, answers, usage }) => {
    const message = { role: 'assistant', content: tokens.join(''), refusal: null };
    const choices = indexes(answers).map((index) => ({ index, message, logprobs: null, finish_reason: finish }));
    return { ...frame, object: 'chat.completion', choices, ...(behaviour.withoutUsage ? {} : { usage }) };
  },

  /** A token in each event. `usage` comes last, in a chunk of its own, where it was asked for. */
  replyStream: async (response, completion, stats) => {
    const { behaviour, frame, tokens, finish, answers, usage, includeUsage } = completion;
    const pace = behaviour.pace ?? NO_PACE;
    const base = { ...frame, object: 'chat.completion.chunk' };
    const noUsage = includeUsage ? { usage: null } : {};
    await wait(pace.first);
    const out = open(response, behaviour, 'text/event-stream; charset=utf-8');
    const send = (delta: object, reason: string | null) => {
      const choices = indexes(answers).map((index) => ({ index, delta, logprobs: null, finish_reason: reason }));
      for (const choice of choices) event(out, JSON.stringify({ ...base, choices: [choice], ...noUsage }));
    };
    send({ role: 'assistant', content: '' }, null);
    for (const [index, token] of tokens.entries()) {
      if (index === behaviour.cutAfter) return hangUp(response);
      await wait(pace.token);
      if (response.destroyed) return;
      send({ content: token }, null);
    }
    send({}, finish);
    if (includeUsage && !behaviour.withoutUsage) {
      event(out, JSON.stringify({ ...base, choices: [], usage }));
      stats.reported(frame.model, usage);
    }
    event(out, '[DONE]');
    out.end();
  },

  refuse: (response, status, code, message) => {
    const type = status >= 500 ? 'server_error' : 'invalid_request_error';
    sendJson(response, status, { error: { message, type, param: null, code } });
  },
};

function event(out: Writable, data: string): void {
  out.write(`data: ${data}\n\n`);
}

function indexes(count: number): ReadonlyArray<number> {
  return [...Array(count).keys()];
}
