import { describe, expect, test } from 'vitest';
import { type Upstream, UpstreamError } from '#core/ports/upstream.ts';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { completion, DONE, MESSAGES, type Script, SSE, streamed } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, max_tokens: 5 };
const ok = { body: completion('hello') };
const failing = (status: number, body = '{"error":{"message":"no","code":"nope"}}', headers = {}) => ({
  status,
  body,
  headers,
});

describe('comments before the first event of a stream', () => {
  const COMMENT = ': one moment\n\n';
  // A request that `a` takes is charged: the reservation at the price of `a` also covers an attempt at `b`.
  const CHEAP = { input: '0.1', output: '0.2' };
  const FIRST = [
    entry('gpt', { identifier: 'a', priority: 1 }),
    entry('gpt', { identifier: 'b', priority: 2, price: CHEAP }),
  ];
  const snapshot = snapshotOf(FIRST, { strategy: 'Priority' });
  const STREAM = { ...CHAT, stream: true };
  const encode = (text: string) => new TextEncoder().encode(text);

  async function* breaks(): AsyncGenerator<Uint8Array> {
    yield encode(COMMENT + COMMENT);
    throw new Error('socket hang up');
  }

  test.each([
    ['breaks', breaks],
    ['ends', () => [COMMENT, COMMENT]],
    ['fails', () => [COMMENT, 'data: {"error":{"message":"overloaded"}}\n\n']],
  ])('are no answer yet: another entry is tried after one that %s after them', async (_, body) => {
    const script: Script = (__, call) => ({ headers: SSE, body: call === 1 ? body() : streamed(['x']) });
    const { chat, ledger, fake } = stage({ snapshot, script });
    expect(await textOf(await chat(STREAM))).toBe(streamed(['x']).slice(0, -2).join('') + DONE);
    expect([fake.requests.length, ledger.asked.length, ledger.settled.length, ledger.liveReservations()]).toEqual([
      2, 1, 1, 0,
    ]);
  });

  test.each([
    ['that continue for fifteen seconds', [COMMENT, COMMENT], 15_000],
    ['of many bytes', [`: ${'x'.repeat(100_000)}\n\n`], 0],
  ])('%s reach the client, and a later failure is an event of the stream', async (_, comments, millis) => {
    let wait: () => void = () => {};
    async function* body(): AsyncGenerator<Uint8Array> {
      for (const comment of comments) {
        yield encode(comment);
        await new Promise<void>((resolve) => {
          wait = resolve;
        });
      }
    }
    const timeouts = { connect: 100, firstByte: 1000, idle: 60_000, total: 600_000 };
    const slow = snapshotOf(FIRST, { strategy: 'Priority', timeouts });
    const { chat, clock, fake } = stage({ snapshot: slow, script: () => ({ headers: SSE, body: body() }) });
    const response = chat(STREAM);
    await settleDown();
    for (const __ of comments.slice(1)) {
      await clock.pass(millis);
      wait();
    }
    const answered = textOf(await response);
    await settleDown();
    wait();
    const text = await answered;
    expect(text.startsWith(comments.join(''))).toBe(true);
    expect(text.slice(comments.join('').length)).toMatch(/^data: .*upstream_error/);
    expect(fake.requests).toHaveLength(1);
  });
});

describe('attempts', () => {
  const outcome = async (response: Response) => [response.status, await response.json()];

  test('end after the retries of the instance, and the last failure is the answer', async () => {
    const { chat, fake, clock, ledger } = stage({ script: (_, call) => failing(call === 3 ? 503 : 500) });
    const response = chat(CHAT);
    for (const pause of [100, 200]) {
      await settleDown();
      await clock.pass(pause);
    }
    expect(await outcome(await response)).toMatchObject([502, { error: { code: 'upstream_error' } }]);
    expect([fake.requests.length, ledger.released.length, ledger.liveReservations()]).toEqual([3, 1, 0]);
  });

  test('are not repeated if the same target would answer the same', async () => {
    const { chat, fake } = stage({ script: () => failing(429, '{}', { 'retry-after': '2.5' }) });
    const response = await chat(CHAT);
    expect(response.headers.get('retry-after')).toBe('3');
    expect(await outcome(response)).toMatchObject([429, { error: { code: 'upstream_rate_limited' } }]);
    expect(fake.requests).toHaveLength(1);
  });

  test('take no longer than the timeout of the entry, and in total that of the instance', async () => {
    const second = entry('gpt', { identifier: 'second', priority: 1, price: { input: '0.1', output: '0.2' } });
    const slow = snapshotOf([entry('gpt', { timeout: 300 }), second], { strategy: 'Priority' });
    const { chat, fake, clock, ledger } = stage({ snapshot: slow, script: () => new Promise(() => {}) });
    const response = chat(CHAT);
    await settleDown();
    await clock.pass(300);
    expect(fake.requests).toHaveLength(2);
    await clock.pass(4_700);
    expect(await outcome(await response)).toMatchObject([504, { error: { code: 'upstream_timeout' } }]);
    expect([ledger.liveReservations(), clock.waiting()]).toEqual([0, 0]);
  });

  test('cost nothing and are repeated if the provider refused, or never took the request', async () => {
    const refused: Upstream = async () => {
      throw new UpstreamError('refused', 'nobody listens', { cause: { code: 'ENOTFOUND' } });
    };
    const { chat, ledger, clock, lines } = stage({ deps: { upstream: refused } });
    const response = chat(CHAT);
    for (const pause of [100, 200]) {
      await settleDown();
      await clock.pass(pause);
    }
    expect(await outcome(await response)).toMatchObject([502, { error: { code: 'upstream_error' } }]);
    expect([ledger.released.length, ledger.settled.length, ledger.grown]).toEqual([1, 0, []]);
    expect(lines.at(-1)?.fields).toMatchObject({ code: 'upstream_error', upstreamCode: 'ENOTFOUND' });
  });

  test.each([
    ['a plain reply comes in one piece, and has all the time there is', false, { firstByte: 5000, idle: 5000 }],
    ['a stream has its own', true, { firstByte: 1000, idle: 1000 }],
  ])('wait for a first byte, and between two, as long as the reply allows: %s', async (_, isStream, timeouts) => {
    const { chat, fake } = stage({ script: () => (isStream ? { headers: SSE, body: streamed(['x']) } : ok) });
    await textOf(await chat({ ...CHAT, stream: isStream }));
    expect(fake.requests[0]?.timeouts).toEqual({ connect: 100, ...timeouts });
  });

  test('take at most an hour, whatever the instance allows: a reservation is renewed no longer than that', async () => {
    const patient = snapshotOf([entry('gpt')], {
      timeouts: { connect: 100, firstByte: 1e12, idle: 1e12, total: 30 * 86_400_000 },
    });
    const { chat, clock, ledger } = stage({ snapshot: patient, script: () => new Promise(() => {}) });
    const response = chat(CHAT);
    await settleDown();
    await clock.pass(3_599_999);
    expect(ledger.liveReservations()).toBe(1);
    await clock.pass(1);
    expect(await outcome(await response)).toMatchObject([504, { error: { code: 'upstream_timeout' } }]);
    expect([ledger.liveReservations(), clock.waiting()]).toEqual([0, 0]);
  });

  test('of a plain request continue when its client leaves, and it is charged in full', async () => {
    let answer: () => void = () => {};
    const client = new AbortController();
    const { chat, fake, ledger } = stage({
      script: () =>
        new Promise((resolve) => {
          answer = () => resolve(ok);
        }),
    });
    const response = chat(CHAT, { signal: client.signal });
    await expect.poll(() => fake.requests.length).toBe(1);
    client.abort();
    answer();
    await response;
    expect(fake.requests[0]?.signal.aborted).toBe(false);
    expect(ledger.settled).toMatchObject([{ cost: 20_000n, estimated: false }]);
  });
});
