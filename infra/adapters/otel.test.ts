// Does a collector get spans as OTLP has them, and does a collector that is away cost nothing?
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Collector, startCollector } from '../../test/collector.ts';
import { createOtelTracer, type OtelDependencies } from './otel.ts';

async function collector(status = 200): Promise<Collector> {
  const collecting = await startCollector(status);
  onTestFinished(collecting.close);
  return collecting;
}

function tracerTo(url: string, more: Partial<OtelDependencies> = {}) {
  const warnings: object[] = [];
  const tracer = createOtelTracer({
    url: `${url}/v1/traces`,
    service: 'gateway-operator-test',
    sampler: 'parentbased_always_on',
    share: 1,
    log: {
      info: () => undefined,
      warn: (message, fields) => void warnings.push({ message, ...fields }),
      error: () => undefined,
    },
    ...more,
  });
  return { tracer, warnings };
}

const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

test('steps are spans of one trace, each below the one it belongs to, with what was learned of it', async () => {
  const { url, posts } = await collector();
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'authorization=Basic%20x');
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=test');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { tracer } = tracerTo(url);
  await tracer.span('run', { look: 'everywhere' }, async (run) => {
    await run.span('part', { keys: 3 }, async (part) => part.add({ slow: false, share: 0.5 }));
    await run.span('call', {}, async () => undefined, { kind: 'client' });
    run.fail('something');
  });
  await tracer.close();
  expect(posts).toHaveLength(1);
  expect(posts[0]).toMatchObject({
    path: '/v1/traces',
    headers: { authorization: 'Basic x', 'content-type': 'application/json' },
    resource: { 'service.name': 'gateway-operator-test', 'deployment.environment.name': 'test' },
  });
  const [part, call, run] = posts[0]?.spans ?? [];
  expect(part).toMatchObject({
    name: 'part',
    kind: 1,
    traceId: run?.traceId,
    parentSpanId: run?.spanId,
    attributes: [
      { key: 'keys', value: { intValue: 3 } },
      { key: 'slow', value: { boolValue: false } },
      { key: 'share', value: { doubleValue: 0.5 } },
    ],
    status: { code: 0 },
  });
  expect(call).toMatchObject({ kind: 3, parentSpanId: run?.spanId });
  expect(run).toMatchObject({ name: 'run', kind: 2, status: { code: 2, message: 'something' } });
  expect(run?.parentSpanId).toBeUndefined();
  expect(BigInt(run?.endTimeUnixNano ?? 0) >= BigInt(run?.startTimeUnixNano ?? 1)).toBe(true);
});

test('one that outlasts its call is ended by hand, once', async () => {
  const { url, spans } = await collector();
  const { tracer } = tracerTo(url);
  const request = tracer.begin('request', {});
  const step = request.begin('step', {});
  step.end();
  request.end();
  request.end();
  await tracer.close();
  expect(spans().map(({ name }) => name)).toEqual(['step', 'request']);
});

test.each([
  [PARENT, { traceId: 'a'.repeat(32), parentSpanId: 'b'.repeat(16) }],
  [`00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`, {}],
  ['nonsense', {}],
  [undefined, {}],
])('a trace of whoever asked goes on: %s', async (parent, expected) => {
  const { url, spans } = await collector();
  const { tracer } = tracerTo(url);
  const place = await tracer.span('run', {}, async (span) => span.place, { parent });
  await tracer.close();
  const [run] = spans();
  expect(run).toMatchObject(expected);
  if (Object.keys(expected).length === 0) expect(run?.parentSpanId).toBeUndefined();
  // By which it goes on elsewhere.
  expect(place).toBe(`00-${run?.traceId}-${run?.spanId}-01`);
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
] as const)('what is followed is as %s says, with a parent %s', async (sampler, parent, count) => {
  const { url, spans } = await collector();
  const { tracer } = tracerTo(url, { sampler, share: 0 });
  await tracer.span('run', {}, async () => undefined, { parent });
  await tracer.close();
  expect(spans()).toHaveLength(count);
});

test('what fails is told as it failed, and goes on to whoever waits', async () => {
  const { url, spans } = await collector();
  const { tracer } = tracerTo(url);
  const failing = tracer.span('run', {}, async () => {
    throw new Error('the database is away');
  });
  await expect(failing).rejects.toThrow('the database is away');
  await tracer.close();
  expect(spans()[0]).toMatchObject({ status: { code: 2, message: 'the database is away' } });
});

test('a collector that refuses or is away is told in the log, and nothing waits for it', async () => {
  const refusing = await collector(400);
  for (const url of [refusing.url, 'http://127.0.0.1:1']) {
    const { tracer, warnings } = tracerTo(url);
    expect(await tracer.span('run', {}, async () => 'done')).toBe('done');
    await tracer.close();
    expect(warnings).toContainEqual(expect.objectContaining({ message: 'spans were not taken' }));
  }
});

test('spans go in batches, and what is too much is dropped', async () => {
  const { url, posts, spans } = await collector();
  const { tracer } = tracerTo(url);
  for (let index = 0; index < 5_000; index += 1) tracer.begin('run', {}).end();
  await tracer.close();
  // One batch was on its way when the others began to wait.
  expect(spans()).toHaveLength(512 + 2_048);
  expect(Math.max(...posts.map((post) => post.spans.length))).toBe(512);
});
