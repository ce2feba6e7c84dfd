// Does a collector get spans as OTLP has them, and does a collector that is away cost nothing?
import { expect, test } from 'vitest';
import { createOtlpTracer } from './otlp.ts';

interface Sent {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly spans: ReadonlyArray<Record<string, unknown>>;
}

function collector(answer: () => Promise<Response> = async () => new Response('{}')) {
  const sent: Sent[] = [];
  const warnings: string[] = [];
  const tracer = createOtlpTracer({
    endpoint: 'http://collector:4318/',
    headers: { authorization: 'Basic x' },
    service: 'reconcile',
    fetch: async (url, init) => {
      const body = JSON.parse(String(init?.body)) as {
        resourceSpans: Array<{ scopeSpans: Array<{ spans: Sent['spans'] }> }>;
      };
      sent.push({
        url: String(url),
        headers: init?.headers as Record<string, string>,
        spans: body.resourceSpans[0]?.scopeSpans[0]?.spans ?? [],
      });
      return answer();
    },
    log: { info: () => undefined, warn: (message) => void warnings.push(message), error: () => undefined },
  });
  return { tracer, sent, warnings };
}

test('steps are spans of one trace, each below the one it belongs to, with what was learned of it', async () => {
  const { tracer, sent } = collector();
  await tracer.span('run', { look: 'everywhere' }, async (run) => {
    await run.span('part', { keys: 3 }, async (part) => part.add({ slow: false, share: 0.5 }));
    run.fail('something');
  });
  await tracer.close();
  expect(sent[0]?.url).toBe('http://collector:4318/v1/traces');
  expect(sent[0]?.headers).toMatchObject({ authorization: 'Basic x', 'content-type': 'application/json' });
  const [part, run] = sent[0]?.spans ?? [];
  expect(part).toMatchObject({
    name: 'part',
    kind: 1,
    traceId: run?.traceId,
    parentSpanId: run?.spanId,
    attributes: [
      { key: 'keys', value: { intValue: '3' } },
      { key: 'slow', value: { boolValue: false } },
      { key: 'share', value: { doubleValue: 0.5 } },
    ],
    status: { code: 0 },
  });
  expect(run).toMatchObject({ name: 'run', kind: 2, status: { code: 2, message: 'something' } });
  expect(run).not.toHaveProperty('parentSpanId');
  expect(run?.traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(BigInt(String(run?.endTimeUnixNano)) >= BigInt(String(run?.startTimeUnixNano))).toBe(true);
  expect(Math.abs(Number(BigInt(String(run?.startTimeUnixNano)) / 1_000_000n) - Date.now())).toBeLessThan(60_000);
});

test.each([
  [`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, 'a'.repeat(32), 'b'.repeat(16)],
  [`00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`, undefined, undefined],
  ['nonsense', undefined, undefined],
])('a trace of whoever asked goes on: %s', async (parent, traceId, parentSpanId) => {
  const { tracer, sent } = collector();
  await tracer.span('run', {}, async () => undefined, parent);
  await tracer.close();
  const [run] = sent[0]?.spans ?? [];
  if (traceId !== undefined) expect(run).toMatchObject({ traceId, parentSpanId });
  else expect(run).not.toHaveProperty('parentSpanId');
});

test('what fails is told as it failed, and goes on to whoever waits', async () => {
  const { tracer, sent } = collector();
  const failing = tracer.span('run', {}, async () => {
    throw new Error('the database is away');
  });
  await expect(failing).rejects.toThrow('the database is away');
  await tracer.close();
  expect(sent[0]?.spans[0]).toMatchObject({ status: { code: 2, message: 'the database is away' } });
});

test('a collector that refuses or is away is told in the log, and nothing waits for it', async () => {
  for (const answer of [
    async () => new Response('no', { status: 500 }),
    () => Promise.reject(new Error('ECONNREFUSED')),
  ]) {
    const { tracer, warnings } = collector(answer);
    expect(await tracer.span('run', {}, async () => 'done')).toBe('done');
    await tracer.close();
    expect(warnings).toEqual(['spans were not taken']);
  }
});

test('spans go in batches, and what is too much is dropped and counted', async () => {
  const { tracer, sent, warnings } = collector();
  for (let index = 0; index < 5_000; index += 1) await tracer.span('run', {}, async () => undefined);
  await tracer.close();
  expect(sent.reduce((sum, { spans }) => sum + spans.length, 0)).toBe(4_096);
  expect(Math.max(...sent.map(({ spans }) => spans.length))).toBe(512);
  expect(warnings).toEqual(['spans were dropped']);
});
