// What does Anthropic say in a test?

export function message(text: string, more: object = {}): string {
  return JSON.stringify({
    id: 'msg_01',
    type: 'message',
    role: 'assistant',
    model: 'claude-x-2026',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
    ...more,
  });
}

export function event(type: string, more: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
}

export const START = event('message_start', {
  message: {
    id: 'msg_01',
    type: 'message',
    role: 'assistant',
    model: 'claude-x-2026',
    content: [],
    stop_reason: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  },
});

export function words(...texts: ReadonlyArray<string>): string[] {
  return texts.map((text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }));
}

export const COUNT = event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } });
export const STOP = event('message_stop');

export function errorBody(type: string, text = 'No.'): string {
  return JSON.stringify({ type: 'error', error: { type, message: text }, request_id: 'req_1' });
}

/** The content of each event of a stream, as a client of OpenAI reads it. */
export const eventsOf = (text: string) =>
  text
    .split('\n\n')
    .filter(Boolean)
    .map((one) => one.replace('data: ', ''));
