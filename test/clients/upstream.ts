// An upstream that counts what it would bill: replies of fixed words in three dialects, with a tool call where it is
// asked for, and named faults.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Nano-dollars of a token. */
export const PRICES = { input: 3000n, output: 15_000n };

export type Fault = '429' | '503' | 'cut' | 'silence';

export interface ClientRequest {
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type MockUpstream = Awaited<ReturnType<typeof createMockUpstream>>;

export async function createMockUpstream() {
  const asked: ClientRequest[] = [];
  let billed = 0n;
  let faults: Fault[] = [];
  const server = createServer((request, response) => void handle(request, response).catch(() => response.destroy()));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    billed: () => billed,
    /** The next requests fail like this, one each. */
    fail: (...next: ReadonlyArray<Fault>) => {
      faults = [...next];
    },
    close: async () => {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '/', headers } = request;
    const body = await text(request);
    const route = /\/(messages|responses|chat\/completions|embeddings)(?:\?|$)/.exec(url)?.[1];
    if (route === undefined) return send(response, 404, { error: { message: `nothing at ${url}` } });
    asked.push({ url, headers, body });
    const fault = faults.shift();
    if (fault === '429' || fault === '503') {
      const message = `the mock upstream answers ${fault}`;
      return send(response, Number(fault), { type: 'error', error: { type: 'api_error', message } });
    }
    const read: Body = JSON.parse(body);
    // The count of a prompt, which does not change with other members of the request.
    const prompt = JSON.stringify(read.messages ?? read.input).length;
    const usage = { input: 1000 + (prompt % 97), output: route === 'embeddings' ? 0 : 20 };
    const reply = replyTo(route, read, usage);
    if (typeof reply !== 'string') {
      bill(usage);
      return send(response, 200, reply);
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (fault === undefined) {
      bill(usage);
      return void response.end(reply);
    }
    // Half of the reply: the first events have come, the last ones never do.
    response.write(reply.slice(0, reply.length / 2));
    if (fault === 'cut') setTimeout(() => response.destroy(), 50);
  }

  function bill({ input, output }: Usage): void {
    billed += BigInt(input) * PRICES.input + BigInt(output) * PRICES.output;
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

interface Usage {
  readonly input: number;
  readonly output: number;
}

interface Body {
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly messages?: unknown;
  readonly input?: unknown;
  readonly encoding_format?: string;
  readonly tools?: ReadonlyArray<{ readonly name?: string; readonly function?: { readonly name: string } }>;
}

/** A tool that an agent brings, with arguments that make it print the words that its result is known by. */
const TOOLS: Readonly<Record<string, object>> = {
  Bash: { command: 'echo tool-ran', description: 'prints' },
  bash: { command: 'echo tool-ran', description: 'prints' },
  exec_command: { cmd: 'echo tool-ran' },
  shell: { command: ['echo', 'tool-ran'] },
  shell_command: { command: 'echo tool-ran' },
  weather: { city: 'Bern' },
};

/** A whole reply, or the text of a stream. */
function replyTo(route: string, body: Body, usage: Usage): object | string {
  if (route === 'embeddings') return embeddings(body, usage);
  const whole = JSON.stringify(body);
  const names = body.tools?.flatMap(({ name, function: of }) => name ?? of?.name ?? []) ?? [];
  const name = names.find((one) => one in TOOLS);
  const isAsked = whole.includes('use the tool') && !whole.includes('tool-ran');
  const call = isAsked && name !== undefined ? { name, args: TOOLS[name] ?? {} } : undefined;
  const words = whole.includes('tool-ran') ? 'The tool has answered.' : 'Hello from the mock.';
  if (route === 'messages') return messages(body, { words, call, usage });
  return route === 'responses' ? responses(body, { words, call, usage }) : chat(body, { words, call, usage });
}

interface ClientReply {
  readonly words: string;
  readonly call: { readonly name: string; readonly args: object } | undefined;
  readonly usage: Usage;
}

function embeddings({ input, encoding_format }: Body, { input: prompt_tokens }: Usage): object {
  const vector = [0.5, -0.25];
  const embedding =
    encoding_format === 'base64' ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector;
  const inputs = Array.isArray(input) ? input : [input];
  const data = inputs.map((_, index) => ({ object: 'embedding', index, embedding }));
  return { object: 'list', model: 'mock', data, usage: { prompt_tokens, total_tokens: prompt_tokens } };
}

const data = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
const named = (type: string, more: object) => `event: ${type}\n${data({ type, ...more })}`;

function messages({ stream }: Body, { words, call, usage }: ClientReply): object | string {
  const counts = { input_tokens: usage.input, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'mock' };
  const block =
    call === undefined
      ? { type: 'text', text: words }
      : { type: 'tool_use', id: 'toolu_1', name: call.name, input: call.args };
  const stop = { stop_reason: call === undefined ? 'end_turn' : 'tool_use', stop_sequence: null };
  if (stream !== true) return { ...head, content: [block], ...stop, usage: { ...counts, output_tokens: usage.output } };
  const begun = {
    ...head,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...counts, output_tokens: 1 },
  };
  const empty = call === undefined ? { type: 'text', text: '' } : { ...block, input: {} };
  const delta =
    call === undefined
      ? { type: 'text_delta', text: words }
      : { type: 'input_json_delta', partial_json: JSON.stringify(call.args) };
  return [
    named('message_start', { message: begun }),
    named('content_block_start', { index: 0, content_block: empty }),
    named('ping', {}),
    named('content_block_delta', { index: 0, delta }),
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: stop, usage: { output_tokens: usage.output } }),
    named('message_stop', {}),
  ].join('');
}

function responses({ stream }: Body, { words, call, usage }: ClientReply): object | string {
  const part = { type: 'output_text', text: words, annotations: [], logprobs: [] };
  const item =
    call === undefined
      ? { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [part] }
      : {
          type: 'function_call',
          id: 'fc_1',
          call_id: 'call_1',
          status: 'completed',
          name: call.name,
          arguments: JSON.stringify(call.args),
        };
  const counts = {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  };
  const head = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'mock',
    error: null,
    incomplete_details: null,
  };
  const more = { instructions: null, metadata: {}, parallel_tool_calls: true, tool_choice: 'auto', tools: [] };
  const whole = { ...head, ...more, status: 'completed', output: [item], usage: counts };
  if (stream !== true) return whole;
  let number = -1;
  const event = (type: string, what: object) => {
    number += 1;
    return named(type, { sequence_number: number, ...what });
  };
  const at = { item_id: item.id, output_index: 0, content_index: 0 };
  const begun = { ...head, ...more, status: 'in_progress', output: [], usage: null };
  const text = [
    event('response.content_part.added', { ...at, part: { ...part, text: '' } }),
    event('response.output_text.delta', { ...at, delta: words, logprobs: [] }),
    event('response.output_text.done', { ...at, text: words, logprobs: [] }),
    event('response.content_part.done', { ...at, part }),
  ];
  const args = [
    event('response.function_call_arguments.delta', { ...at, delta: JSON.stringify(call?.args) }),
    event('response.function_call_arguments.done', { ...at, arguments: JSON.stringify(call?.args) }),
  ];
  const started = { ...item, status: 'in_progress', ...(call === undefined ? { content: [] } : { arguments: '' }) };
  return [
    event('response.created', { response: begun }),
    event('response.output_item.added', { output_index: 0, item: started }),
    ...(call === undefined ? text : args),
    event('response.output_item.done', { output_index: 0, item }),
    event('response.completed', { response: whole }),
  ].join('');
}

function chat({ stream, stream_options }: Body, { words, call, usage }: ClientReply): object | string {
  const counts = {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
  };
  const head = { id: 'chatcmpl-1', created: 1, model: 'mock' };
  const finish_reason = call === undefined ? 'stop' : 'tool_calls';
  const tool = call && {
    id: 'call_1',
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.args) },
  };
  const reply = tool === undefined ? { content: words } : { content: null, tool_calls: [tool] };
  if (stream !== true) {
    const message = { role: 'assistant', ...reply, refusal: null };
    const choices = [{ index: 0, message, logprobs: null, finish_reason }];
    return { ...head, object: 'chat.completion', choices, usage: counts };
  }
  const chunk = (delta: object, finish: string | null) =>
    data({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] });
  const delta = tool === undefined ? reply : { tool_calls: [{ index: 0, ...tool }] };
  const count = data({ ...head, object: 'chat.completion.chunk', choices: [], usage: counts });
  return [
    chunk({ role: 'assistant', content: '' }, null),
    chunk(delta, null),
    chunk({}, finish_reason),
    stream_options?.include_usage === true ? count : '',
    'data: [DONE]\n\n',
  ].join('');
}
