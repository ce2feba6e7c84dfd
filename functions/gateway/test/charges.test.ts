// Charges of a request, by its end: each row of the table in docs/internals/ledger.md, on every path that spends, for
// every dialect.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { UpstreamError } from '#core/ports/upstream.ts';
import { entry, KEY, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { breaksAfter, type Script, SSE, stuckAfter } from '../../../test/gateway/upstream.ts';
import { CHAT, WAYS_TO_SPEND, type Way } from '../../../test/gateway/ways-to-spend.ts';
import { createRoutes } from '../app.ts';
import { APIS } from '../wire/apis.ts';

/** A gateway whose provider gives this answer, called at this path. */
function open({ provider, path, body }: Way, script: Script) {
  const world = stage({ snapshot: snapshotOf([entry('gpt', { provider })], { retries: 0 }), script });
  const ask = (more: object = {}, signal?: AbortSignal) =>
    world.chat({ ...body, ...more }, { path, ...(signal === undefined ? {} : { signal }) });
  return { ...world, ask };
}

/** Statuses of a proxy whose provider took the request and did not answer. */
const UNANSWERED = [408, 502, 504, 520, 524];
const IN_PART = { estimated: true, tokens: { output: expect.any(Number) } };
const PROMPT = { estimated: true, tokens: { output: 0 } };
const stream = { stream: true };
/** The plain request, and the streamed one if the API has streams. */
const kindsOf = (way: Way) => (way.stream === undefined ? [{}] : [{}, stream]);

const ROWS: Readonly<Record<string, (way: Way) => Promise<void>>> = {
  async completed(way) {
    const plain = open(way, () => ({ body: way.whole }));
    await plain.ask();
    expect(plain.ledger.settled).toMatchObject([{ cost: way.cost, estimated: false }]);
    if (way.stream === undefined) return;
    const { whole, cost } = way.stream;
    const streaming = open(way, () => ({ headers: SSE, body: whole }));
    await textOf(await streaming.ask(stream));
    expect(streaming.ledger.settled).toMatchObject([{ cost, estimated: false }]);
  },
  async 'a stream that the client left'(way) {
    if (way.stream === undefined) return;
    const { begun } = way.stream;
    const { ask, ledger, fake } = open(way, () => ({ headers: SSE, body: stuckAfter(...begun) }));
    const reader = (await ask(stream)).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await settleDown();
    expect(fake.requests[0]?.signal.aborted).toBe(true);
    expect(ledger.settled).toMatchObject([IN_PART]);
    expect(ledger.settled[0]?.cost).toBeGreaterThan(0n);
  },
  async 'a plain request that the client left'(way) {
    const client = new AbortController();
    const { promise, resolve } = Promise.withResolvers<{ body: string }>();
    const { ask, ledger, fake } = open(way, () => promise);
    const response = ask({}, client.signal);
    await settleDown();
    client.abort();
    resolve({ body: way.whole });
    await response;
    expect(fake.requests[0]?.signal.aborted).toBe(false);
    expect(ledger.settled).toMatchObject([{ cost: way.cost, estimated: false }]);
  },
  async 'an upstream that refused the request in its own words, or never received it (not resolved, refused, TLS failed, wrong protocol)'(
    way,
  ) {
    const scripts: readonly Script[] = [
      ...[400, ...UNANSWERED].map((status) => () => ({ status, body: way.refusal })),
      ...(['refused', 'unsent'] as const).map((how) => () => Promise.reject(new UpstreamError(how, 'not reached'))),
    ];
    for (const [script, more] of scripts.flatMap((one) => kindsOf(way).map((kind) => [one, kind] as const))) {
      const { ask, ledger } = open(way, script);
      expect((await ask(more)).status).toBeGreaterThanOrEqual(400);
      expect([ledger.settled.length, ledger.released.length, ledger.liveReservations()]).toEqual([0, 1, 0]);
    }
  },
  async "an attempt that the upstream received and that timed out or broke off before anything came; a 408, 502, 504, 520 or 524 without the provider's own error (a JSON object with a member `error`)"(
    way,
  ) {
    const scripts: readonly Script[] = [
      ...[() => new Promise<never>(() => {}), () => ({ body: breaksAfter() })],
      ...UNANSWERED.map((status) => () => ({ status, body: '<html>' })),
    ];
    for (const [script, more] of scripts.flatMap((one) => kindsOf(way).map((kind) => [one, kind] as const))) {
      const { ask, ledger, clock } = open(way, script);
      const response = ask(more);
      await settleDown();
      await clock.pass(5_000);
      expect((await response).status).toBeGreaterThanOrEqual(502);
      expect(ledger.settled).toMatchObject([PROMPT]);
      expect(ledger.settled[0]?.cost).toBeGreaterThan(0n);
    }
  },
  async 'a plain 200 that broke off before its end'(way) {
    const half = way.whole.slice(0, way.whole.length / 2);
    for (const body of [half, breaksAfter(half)]) {
      const { ask, ledger } = open(way, () => ({ body }));
      expect((await ask()).status).toBe(502);
      expect(ledger.settled).toMatchObject([IN_PART]);
      const hasOutput = way.path.endsWith('embeddings') === false;
      expect((ledger.settled[0]?.tokens.output ?? 0) > 0).toBe(hasOutput);
    }
  },
  async 'an upstream that died in the middle of a stream'(way) {
    if (way.stream === undefined) return;
    const { begun, error } = way.stream;
    const { ask, ledger } = open(way, () => ({ headers: SSE, body: breaksAfter(...begun) }));
    expect(await textOf(await ask(stream))).toContain(error);
    expect(ledger.settled).toMatchObject([IN_PART]);
    expect(ledger.settled[0]?.tokens.output).toBeGreaterThan(0);
  },
  async "work that no usage reports (a provider's own tools, priority tiers, background work)"(way) {
    for (const more of way.unmetered) {
      const { ask, ledger, fake } = open(way, () => ({ body: way.whole }));
      expect((await ask(more)).status).toBe(400);
      expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
    }
  },
};

describe.each(WAYS_TO_SPEND)('behind $provider, on $path', (way) => {
  test.each(Object.entries(ROWS))('%s', (_, walk) => walk(way));
});

test('the table of docs/internals/ledger.md has these rows and no others', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/internals/ledger.md'), 'utf8');
  const [, table = ''] = text.split('| how a request ended | charged |\n|---|---|\n');
  const rows = table
    .split('\n\n')[0]
    ?.split('\n')
    .map((line) => line.split(' | ')[0]?.slice(2));
  expect(Object.keys(ROWS)).toEqual(rows);
});

/** Paths that count tokens for free. */
const COUNTING = APIS.flatMap(({ path, counting }) => (counting === undefined ? [] : [path + counting.path]));
const FREE = ['/models', '/models/gpt', '/key', '/api/oauth/usage', '/healthz', '/readyz', '/metrics', '/nowhere'];

test('every route of the gateway spends as the table says, or is one that charges nothing', () => {
  const world = stage();
  const routes = [...createRoutes(world.deps).keys()].filter((path) => !path.startsWith('/v1/'));
  const spending = APIS.map(({ path }) => path);
  const free = [...FREE, ...COUNTING, '/models/'];
  expect(routes.filter((path) => !spending.includes(path) && !free.includes(path))).toEqual([]);
});

test.each(COUNTING)('nothing is charged or reserved on %s, although a provider is called', async (path) => {
  const { ledger, chat, fake } = stage({
    snapshot: snapshotOf([entry('gpt', { provider: path.startsWith('/messages') ? 'anthropic' : 'openai' })]),
    script: () => ({ body: '{"input_tokens":7}' }),
  });
  for (const route of [path, `/v1${path}`])
    expect((await chat({ ...CHAT, input: 'a' }, { path: route })).status).toBe(200);
  expect([ledger.asked.length, ledger.settled.length, fake.requests.length]).toEqual([0, 0, 2]);
});

test.each(FREE)('nothing is charged on %s, whatever the request', async (path) => {
  const { ledger, app, fake } = stage();
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  for (const route of [path, `/v1${path}`]) {
    await app.request(route, { headers });
    await app.request(route, { method: 'POST', headers, body: JSON.stringify(CHAT) });
  }
  expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
});
