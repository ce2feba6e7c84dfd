// Requests and replies of each route in the bench, with the same words and counts.

export type Route = 'chat' | 'messages' | 'translated' | 'responses' | 'embeddings';

/** Words of an answer, and the tokens of its prompt. */
export interface Size {
  readonly words: number;
  readonly promptTokens: number;
}

interface Dialect {
  /** Where clients ask. */
  readonly path: string;
  body(prompt: string): object;
  whole(size: Size): object;
  /** The text of each event; absent: the route has no streams. */
  readonly events?: (size: Size) => ReadonlyArray<string>;
}

const FRAME = { id: 'chatcmpl-bench', created: 0, model: 'sample-small' };
const MESSAGE = { id: 'msg_bench', type: 'message', role: 'assistant', model: 'sample-small' };
const RESPONSE = { id: 'resp_bench', object: 'response', model: 'sample-small' };
const WORD = 'word ';

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const named = (type: string, more: object) => `event: ${type}\n${data({ type, ...more })}`;
const each = (words: number, text: string): ReadonlyArray<string> => Array.from({ length: words }, () => text);

const CHAT: Dialect = {
  path: '/chat/completions',
  body: (prompt) => ({
    messages: [{ role: 'user', content: prompt }],
    model: 'sample-small',
    max_completion_tokens: 256,
  }),
  whole: (size) => ({
    ...FRAME,
    object: 'chat.completion',
    usage: chatUsage(size),
    choices: [{ index: 0, message: { role: 'assistant', content: WORD.repeat(size.words) }, finish_reason: 'stop' }],
  }),
  events: (size) => {
    const chunk = (more: object) => data({ ...FRAME, object: 'chat.completion.chunk', ...more });
    const choice = (delta: object, finish_reason: string | null) => ({ choices: [{ index: 0, delta, finish_reason }] });
    return [
      ...each(size.words, chunk(choice({ content: WORD }, null))),
      ...[chunk(choice({}, 'stop')), chunk({ choices: [], usage: chatUsage(size) }), 'data: [DONE]\n\n'],
    ];
  },
};

const MESSAGES: Dialect = {
  path: '/messages',
  body: (prompt) => ({ messages: [{ role: 'user', content: prompt }], model: 'sample-claude', max_tokens: 256 }),
  whole: ({ words, promptTokens }) => ({
    ...MESSAGE,
    content: [{ type: 'text', text: WORD.repeat(words) }],
    stop_reason: 'end_turn',
    usage: { input_tokens: promptTokens, output_tokens: words },
  }),
  events: ({ words, promptTokens }) => [
    named('message_start', { message: { ...MESSAGE, usage: { input_tokens: promptTokens, output_tokens: 1 } } }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...each(words, named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: WORD } })),
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: words } }),
    named('message_stop', {}),
  ],
};

const RESPONSES: Dialect = {
  path: '/responses',
  body: (prompt) => ({ input: prompt, model: 'sample-small', max_output_tokens: 256 }),
  whole: (size) => ({ ...RESPONSE, status: 'completed', output: [outputOf(size)], usage: responsesUsage(size) }),
  events: (size) => [
    named('response.created', { response: { ...RESPONSE, status: 'in_progress', output: [] } }),
    ...each(size.words, named('response.output_text.delta', { output_index: 0, content_index: 0, delta: WORD })),
    named('response.completed', {
      response: { ...RESPONSE, status: 'completed', output: [outputOf(size)], usage: responsesUsage(size) },
    }),
  ],
};

const EMBEDDINGS: Dialect = {
  path: '/embeddings',
  body: (prompt) => ({ input: prompt, model: 'sample-small' }),
  whole: ({ promptTokens }) => ({
    object: 'list',
    model: 'sample-small',
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    data: [{ object: 'embedding', index: 0, embedding: Array(256).fill(0.123) }],
  }),
};

export const DIALECTS: Readonly<Record<Route, Dialect>> = {
  chat: CHAT,
  messages: MESSAGES,
  responses: RESPONSES,
  embeddings: EMBEDDINGS,
  // Asked as Anthropic's clients ask, answered as OpenAI's providers answer.
  translated: { ...CHAT, path: MESSAGES.path, body: (prompt) => ({ ...MESSAGES.body(prompt), model: 'sample-small' }) },
};

function chatUsage({ words, promptTokens }: Size): object {
  return { prompt_tokens: promptTokens, completion_tokens: words, total_tokens: promptTokens + words };
}

function responsesUsage({ words, promptTokens }: Size): object {
  return { input_tokens: promptTokens, output_tokens: words, total_tokens: promptTokens + words };
}

function outputOf({ words }: Size): object {
  const content = [{ type: 'output_text', text: WORD.repeat(words), annotations: [] }];
  return { id: 'msg_bench', type: 'message', role: 'assistant', status: 'completed', content };
}
