// What is an upstream in a test? A script of replies, and the texts that providers send.
import { type StopSignal, type Upstream, UpstreamError, type UpstreamRequest } from '#core/ports/upstream.ts';
import { joinBody } from '../../infra/adapters/upstream/body.ts';

export interface WireReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: AsyncIterable<Uint8Array> | Iterable<Uint8Array | string> | string;
}

/** The body that was sent, as text. */
export const sentText = (request: UpstreamRequest | undefined): string => joinBody(request?.body ?? []).toString();

/** The address that was called, with what the client added to it. */
export const addressOf = (request: UpstreamRequest | undefined): string | undefined =>
  request && request.url + (request.query ?? '');

export type Script = (request: UpstreamRequest, call: number) => WireReply | Promise<WireReply>;

/**
 * An upstream that answers by script and keeps what it was sent. An aborted request breaks its body, as a socket would.
 */
export function createUpstreamFake(script: Script) {
  const requests: UpstreamRequest[] = [];
  let returned = 0;
  const upstream: Upstream = async (request) => {
    requests.push(request);
    const reply = await Promise.race([script(request, requests.length), aborted(request.signal)]);
    const { status = 200, headers = { 'content-type': 'application/json' }, body = '' } = reply;
    return { status, headers, body: read(typeof body === 'string' ? [body] : body, request.signal) };
  };

  async function* read(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array | string>, signal: StopSignal) {
    const iterator = toAsync(body);
    try {
      while (true) {
        const next = await Promise.race([iterator.next(), aborted(signal)]);
        if (next.done) return;
        yield typeof next.value === 'string' ? new TextEncoder().encode(next.value) : next.value;
      }
    } catch (error) {
      // As adapters do: what is no failure of the network is our own error.
      if (error instanceof UpstreamError || error instanceof TypeError) throw error;
      throw new UpstreamError('broken', 'the body broke off', { cause: error });
    } finally {
      returned += 1;
    }
  }

  return {
    upstream,
    requests,
    /** Bodies that were read to their end or let go. */
    ended: () => returned,
    sent: (index = 0): Record<string, unknown> => JSON.parse(sentText(requests[index])),
  };
}

async function* toAsync<T>(items: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T> {
  yield* items;
}

function aborted(signal: StopSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(new UpstreamError('broken', 'aborted'));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail);
  });
}

export const MESSAGES = [{ role: 'user', content: 'Say hello.' }];

export function completion(content: string, usage: unknown = { prompt_tokens: 10, completion_tokens: 5 }): string {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  return JSON.stringify({ id: 'c-1', object: 'chat.completion', created: 1, model: 'real', choices, usage });
}

export function chunk(delta: object, more: object = {}, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c-1', object: 'chat.completion.chunk', created: 1, model: 'real', choices, ...more })}\n\n`;
}

export const USAGE_CHUNK = `data: ${JSON.stringify({
  id: 'c-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'real',
  choices: [],
  usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 },
})}\n\n`;

export const DONE = 'data: [DONE]\n\n';

export const SSE = { 'content-type': 'text/event-stream; charset=utf-8' };

/** Embeddings of one input with so many tokens. */
export function embedded(tokens: number): string {
  const data = [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }];
  return JSON.stringify({
    object: 'list',
    data,
    model: 'real',
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

/** The words as a stream of chunks, ended as OpenAI ends it. */
export function streamed(words: ReadonlyArray<string>): string[] {
  const deltas = words.map((content) => chunk({ content }));
  return [chunk({ role: 'assistant', content: '' }), ...deltas, chunk({}, {}, 'stop'), USAGE_CHUNK, DONE];
}

/** A body with these texts that never ends. */
export async function* stuckAfter(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield new TextEncoder().encode(text);
  await new Promise(() => {});
}

/** A body with these texts whose connection then breaks. */
export async function* breaksAfter(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield new TextEncoder().encode(text);
  throw new Error('socket hang up');
}
