// Does whoever follows a request see its steps, and nothing that is nobody's business? And is nothing done where nobody follows?
import { describe, expect, test } from 'vitest';
import { createTracerFake } from '#core/ports/tracer.fixture.ts';
import { stage } from './gateway.fixture.ts';
import { entry, KEY, snapshotOf } from './instance.fixture.ts';
import { completion, MESSAGES, SSE, streamed } from './upstream.fixture.ts';

const CHAT = { model: 'gpt', messages: MESSAGES };
const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const paths = (tracer: ReturnType<typeof createTracerFake>) => tracer.spans.map(({ path }) => path);

describe('a request that is followed', () => {
  test('shows its hold, each call of a provider and its settlement, with names of the field', async () => {
    const tracer = createTracerFake();
    const { chat, clock } = stage({
      deps: { tracer },
      snapshot: snapshotOf([
        entry('gpt', { identifier: 'first' }),
        entry('gpt', { identifier: 'second', priority: 1 }),
      ]),
      script: (_request, call) => {
        clock.pass(250);
        return call === 1 ? { status: 401, body: '{}' } : { body: completion('hello') };
      },
    });
    expect((await chat(CHAT)).status).toBe(200);
    const [request, hold, failed, answered, settle] = tracer.spans;
    expect(paths(tracer)).toHaveLength(5);
    expect(request).toMatchObject({
      path: 'POST /chat/completions',
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/chat/completions',
        'http.response.status_code': 200,
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'gpt',
        'gen_ai.usage.input_tokens': 10,
        'gen_ai.usage.output_tokens': 5,
        'gateway_operator.request_id': 'request-1',
        'gateway_operator.cost_dollars': expect.stringMatching(/^0\.0000/),
        'gateway_operator.end': 'complete',
      },
    });
    expect(hold?.path).toBe('POST /chat/completions > hold');
    expect(failed).toMatchObject({
      origin: { kind: 'client' },
      failed: 'upstream_error',
      attributes: { 'error.type': 'upstream_error', 'http.response.status_code': 401 },
    });
    expect(answered).toMatchObject({
      attributes: {
        'http.request.resend_count': 1,
        'gen_ai.response.time_to_first_chunk': 0.25,
        'gateway_operator.entry': 'second',
      },
    });
    expect(answered?.failed).toBeUndefined();
    expect(settle?.path).toBe('POST /chat/completions > settle');
    expect(tracer.spans.map(({ ends }) => ends)).toEqual([1, 1, 1, 1, 1]);
  });

  test('is over with the last byte of its stream', async () => {
    const tracer = createTracerFake();
    const { chat } = stage({ deps: { tracer }, script: () => ({ headers: SSE, body: streamed(['Hel', 'lo']) }) });
    const response = await chat({ ...CHAT, stream: true });
    const [request, , call] = tracer.spans;
    expect([request?.ends, call?.ends]).toEqual([0, 0]);
    await response.text();
    expect(paths(tracer).at(-1)).toBe('POST /chat/completions > settle');
    expect(tracer.spans.filter(({ ends }) => ends !== 1)).toEqual([]);
  });

  test('that is refused says why; only what is our fault has failed', async () => {
    const tracer = createTracerFake();
    const { chat } = stage({ deps: { tracer }, script: () => ({ status: 401, body: '{}' }) });
    await chat(CHAT, { key: null });
    await chat({ ...CHAT, model: 'other' });
    await chat(CHAT);
    const requests = tracer.spans.filter(({ path }) => path === 'POST /chat/completions');
    expect(requests).toMatchObject([
      { attributes: { 'http.response.status_code': 401, 'error.type': 'invalid_api_key' } },
      { attributes: { 'http.response.status_code': 404, 'error.type': 'model_not_found' } },
      { attributes: { 'http.response.status_code': 502, 'error.type': 'upstream_error' }, failed: 'upstream_error' },
    ]);
    expect(requests.slice(0, 2).map(({ failed }) => failed)).toEqual([undefined, undefined]);
    expect(tracer.spans.filter(({ ends }) => ends !== 1)).toEqual([]);
  });

  test("goes on with the client's trace; the provider is told nothing of it", async () => {
    const tracer = createTracerFake();
    const { app, fake } = stage({ deps: { tracer } });
    await app.request('/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, traceparent: PARENT, tracestate: 'a=b', baggage: 'c=d' },
      body: JSON.stringify(CHAT),
    });
    expect(tracer.spans[0]?.origin.parent).toBe(PARENT);
    expect(Object.keys(fake.requests[0]?.headers ?? {}).join(' ')).not.toMatch(/trace|baggage|b3/i);
  });

  test('shows no prompt, no reply, no key and no credential', async () => {
    const tracer = createTracerFake();
    const { chat } = stage({
      deps: { tracer },
      snapshot: snapshotOf([
        entry('gpt', { identifier: 'first', apiBase: 'https://user:hidden@provider.example.com/v1' }),
        entry('gpt', { identifier: 'second', priority: 1 }),
      ]),
      script: (_request, call) =>
        call === 1
          ? { status: 429, body: '{"error":{"message":"account of Ada Private"}}' }
          : { body: completion('the reply of reply') },
    });
    await (await chat({ ...CHAT, messages: [{ role: 'user', content: 'the prompt of prompts' }] })).text();
    const said = JSON.stringify(tracer.spans);
    for (const secret of [KEY, 'the prompt', 'the reply', 'Ada Private', 'hidden', 'value-of'])
      expect(said).not.toContain(secret);
  });
});
