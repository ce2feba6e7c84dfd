import { expect, onTestFinished, test, vi } from 'vitest';
import type { Log } from '#core/ports/telemetry.ts';
import { type Collector, startCollector } from '../../../../test/support/collector.ts';
import { silentLog } from '../../../../test/support/silent-log.ts';
import { TracesEnvironment } from '../../config/environments.ts';
import { readEnvironment } from '../../config/variable.ts';
import { createTraces, type Traces } from '../otel.ts';
import { type RunningServer, serve } from '../serve.ts';

async function collector(status = 200): Promise<Collector> {
  const collecting = await startCollector(status);
  onTestFinished(collecting.close);
  return collecting;
}

interface TracedServer {
  readonly traces: Traces;
  readonly log: Log;
  readonly warnings: object[];
  /** Where requests are traced; another path is served all the same. */
  readonly url: string;
}

/** Serves `handle` with spans that go to `url`. */
async function traced(
  url: string,
  handle: (request: Request, traces: TracedServer) => Response | Promise<Response>,
  more: Partial<TracesEnvironment> = {},
): Promise<TracedServer> {
  const warnings: object[] = [];
  const warn: Log['warn'] = (message, fields) => void warnings.push({ message, ...fields });
  const environment = { ...readEnvironment(TracesEnvironment, { OTEL_EXPORTER_OTLP_ENDPOINT: url }), ...more };
  const traces = createTraces(environment, 'gateway', { ...silentLog, warn });
  const log = traces.logged(silentLog);
  const fetch = (request: Request): Response | Promise<Response> =>
    handle(request, { traces, log, warnings, url: served.url });
  const served: RunningServer = await serve({ fetch, port: 0, host: '127.0.0.1', traces });
  onTestFinished(() => served.close(0));
  return { traces, log, warnings, url: `${served.url}/v1/chat/completions` };
}

const post = async (url: string, headers: Record<string, string> = {}) =>
  (await fetch(url, { method: 'POST', headers })).text();

const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

const attributesOf = ({ attributes }: { attributes: ReadonlyArray<{ key: string; value: object }> }) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

test('a request is a span: its route, its status and what its log line says, and nothing that the line must not share', async () => {
  const { url, posts } = await collector();
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'authorization=Basic%20x');
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=test');
  onTestFinished(() => void vi.unstubAllEnvs());
  const server = await traced(url, async (_, { log }) => {
    await new Promise((resolve) => setImmediate(resolve));
    const tokens = { input: 3, output: 4 };
    log.info('request', {
      requestId: 'one',
      alias: 'secret',
      user: 'me@example',
      model: 'small',
      identifier: 'small-1',
      cost: '0.5',
      tokens,
      end: 'cut',
    });
    log.info('request', { requestId: 'another', end: 'client_left' });
    log.warn('another line', { code: 'not of the request' });
    return new Response('done', { status: 201, headers: { 'x-request-id': 'one' } });
  });
  await post(server.url);
  await server.traces.close();
  expect(posts).toHaveLength(1);
  expect(posts[0]).toMatchObject({
    path: '/v1/traces',
    headers: { authorization: 'Basic x', 'content-type': 'application/json' },
    resource: { 'service.name': 'gateway-operator-gateway', 'deployment.environment.name': 'test' },
  });
  const [span] = posts[0]?.spans ?? [];
  if (span === undefined) throw new Error('there is no span');
  expect(span).toMatchObject({ name: 'POST /chat/completions', kind: 2, status: { code: 0 } });
  expect(span.parentSpanId).toBeUndefined();
  expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true);
  expect(attributesOf(span)).toEqual({
    'http.request.method': 'POST',
    'http.route': '/chat/completions',
    'http.response.status_code': 201,
    'gateway_operator.request_id': 'one',
    'gen_ai.request.model': 'small',
    'gen_ai.usage.input_tokens': 3,
    'gen_ai.usage.output_tokens': 4,
    'gateway_operator.model_entry': 'small-1',
    'gateway_operator.cost_dollars': '0.5',
    'gateway_operator.end': 'cut',
  });
});

test.each([
  [
    'admission',
    { kind: 'User', name: 'me', allowed: false, rules: ['one', 'other'], user: 'who asked' },
    ['one', 'other'],
  ],
  ['reconciled', { actions: { CreateSecret: 2 }, failed: {} }, undefined],
])('the line "%s" is said by its span', async (line, fields, rules) => {
  const { url, spans, text } = await collector();
  const server = await traced(url, (_, { log }) => {
    log.info(line, fields);
    return new Response();
  });
  await post(server.url);
  await server.traces.close();
  expect(text()).toContain(
    line === 'admission' ? '"gateway_operator.rules"' : '"gateway_operator.actions.CreateSecret"',
  );
  if (rules !== undefined) for (const rule of rules) expect(text()).toContain(rule);
  expect(text()).not.toContain('who asked');
  expect(spans()).toHaveLength(1);
});

test('a span lasts to the last byte of a stream, and has the line that is written then', async () => {
  const { url, spans } = await collector();
  let end: () => void = () => undefined;
  const server = await traced(url, (_, { log }) => {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode('one '));
        end = () => {
          controller.enqueue(new TextEncoder().encode('two'));
          log.warn('request', { requestId: 'one', end: 'broken' });
          controller.close();
        };
      },
    });
    return new Response(body, { headers: { 'x-request-id': 'one' } });
  });
  const reply = await fetch(server.url, { method: 'POST' });
  const reader = reply.body?.getReader();
  await reader?.read();
  end();
  while ((await reader?.read())?.done === false);
  await server.traces.close();
  const [span] = spans();
  expect(span).toMatchObject({ status: { code: 2, message: 'broken' } });
});

test('a span waits for its line, which may come long after the client has left; one that never comes ends with the process', async () => {
  const { url, spans } = await collector();
  const server = await traced(url, (request) => {
    const id = request.headers.get('x-id') ?? '';
    return new Response('', { headers: { 'x-request-id': id } });
  });
  await post(server.url, { 'x-id': 'one' });
  await post(server.url, { 'x-id': 'never' });
  server.log.info('request', { requestId: 'one', end: 'client_left' });
  await server.traces.close();
  expect(spans().map((span) => attributesOf(span)['gateway_operator.end'])).toEqual(['client_left', undefined]);
});

test('a reply of 500 and above is a failed span, a refusal is none', async () => {
  const { url, spans } = await collector();
  const server = await traced(url, (request) => new Response('', { status: Number(request.headers.get('x-status')) }));
  await post(server.url, { 'x-status': '429' });
  await post(server.url, { 'x-status': '503' });
  await server.traces.close();
  expect(spans().map(({ status }) => status.code)).toEqual([0, 2]);
});

test('only the named routes are traced, and nothing of their path but the route', async () => {
  const { url, spans, text } = await collector();
  const server = await traced(url, () => new Response());
  await fetch(server.url);
  await post(server.url.replace('/v1/chat/completions', '/healthz'));
  await post(server.url.replace('/v1/', '/unguessable/segment/').concat('?with=this'));
  await server.traces.close();
  expect(spans()).toHaveLength(1);
  expect(text()).not.toMatch(/unguessable|with=this|healthz/);
});

test.each([
  [PARENT, { traceId: 'a'.repeat(32), parentSpanId: 'b'.repeat(16) }],
  [`00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`, {}],
  ['nonsense', {}],
  [undefined, {}],
])('the trace of a caller is continued, also to the function that is asked meanwhile: %s', async (parent, expected) => {
  const { url, spans } = await collector();
  let traceparent: string | null = null;
  const server = await traced(url, async (_, { traces }) => {
    await new Promise((resolve) => setTimeout(resolve, 0));
    const send = traces.sent(async (request) => {
      traceparent = request.headers.get('traceparent');
      return new Response();
    });
    return send(new Request('http://127.0.0.1/', { method: 'POST' }));
  });
  await post(server.url, parent === undefined ? {} : { traceparent: parent });
  await server.traces.close();
  const [span] = spans();
  expect(span).toMatchObject(expected);
  if (Object.keys(expected).length === 0) expect(span?.parentSpanId).toBeUndefined();
  expect(traceparent).toBe(`00-${span?.traceId}-${span?.spanId}-01`);
});

test.each([
  ['parentbased_always_on', `${PARENT.slice(0, -2)}00`, 0],
  ['parentbased_always_on', PARENT, 1],
  ['always_on', `${PARENT.slice(0, -2)}00`, 1],
  ['always_off', PARENT, 0],
  ['parentbased_always_off', undefined, 0],
  ['parentbased_always_off', PARENT, 1],
  ['traceidratio', PARENT, 0],
  ['parentbased_traceidratio', undefined, 0],
] as const)('what is sampled is as %s says, with a parent %s', async (sampler, parent, count) => {
  const { url, spans } = await collector();
  const server = await traced(url, () => new Response(), { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: 0 });
  await post(server.url, parent === undefined ? {} : { traceparent: parent });
  await server.traces.close();
  expect(spans()).toHaveLength(count);
});

test('a collector that refuses or is away is told in the log, and nothing waits for it', async () => {
  const refusing = await collector(400);
  for (const url of [refusing.url, 'http://127.0.0.1:1']) {
    const server = await traced(url, () => new Response('done'));
    expect(await post(server.url)).toBe('done');
    await server.traces.close();
    expect(server.warnings).toContainEqual(expect.objectContaining({ message: 'traces: the collector refused spans' }));
  }
});
