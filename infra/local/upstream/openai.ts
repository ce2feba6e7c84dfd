// OpenAI's chat completions, as the sample upstream speaks them: a token in each event, `usage` in a last one where the request asks for that.
import { CompletionRequest } from './completion.ts';
import type { Dialect } from './dialect.ts';

export const openai: Dialect = {
  read: (body) => {
    const parsed = CompletionRequest.safeParse(body);
    return parsed.success ? { request: parsed.data } : { wrong: parsed.error.issues[0]?.message ?? 'malformed' };
  },

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
        .map((choice) => event({ ...base, choices: [choice], ...(includeUsage ? { usage: null } : {}) }))
        .join('');
    const reported = includeUsage ? usage : undefined;
    const count = reported === undefined ? '' : event({ ...base, choices: [], usage: reported });
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

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
