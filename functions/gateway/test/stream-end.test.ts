import { describe, expect, test } from 'vitest';
import { type Upstream, UpstreamError } from '#core/ports/upstream.ts';
import { KEY, keyRecord } from '../../../test/gateway/instance.ts';
import { stage as stageWorld, WAYS, type World } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import {
  chunk,
  DONE,
  MESSAGES,
  type Script,
  SSE,
  streamed,
  stuckAfter,
  USAGE_CHUNK,
} from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, stream: true };
const ASKING = { ...CHAT, stream_options: { include_usage: true } };
const plays = (body: Iterable<string | Uint8Array> | AsyncIterable<Uint8Array>): Script => {
  return () => ({ headers: SSE, body });
};

describe.each(WAYS)('through %s', (_, room) => {
  const stage = (world: World = {}) => stageWorld({ ...world, room });

  describe('a client that leaves a stream', () => {
    test('stops the upstream immediately and is charged for the streamed part, at least the prompt', async () => {
      const world = stage({ script: plays(stuckAfter(...['a', 'b', 'c'].map((content) => chunk({ content })))) });
      const reader = (await world.chat(CHAT)).body?.getReader();
      await reader?.read();
      await reader?.cancel();
      await settleDown();
      expect(world.fake.requests[0]?.signal.aborted).toBe(true);
      expect(world.ledger.settled).toMatchObject([{ estimated: true }]);
      expect(world.ledger.settled[0]?.tokens.input).toBeGreaterThan(5);
      expect(world.ledger.settled[0]?.tokens.output).toBeGreaterThanOrEqual(1);
      expect(world.lines[0]?.fields).toMatchObject({ end: 'client_left' });
      expect([world.ledger.liveReservations(), world.clock.waiting()]).toEqual([0, 0]);
    });

    test('by closing its connection, before the first byte, is charged for the prompt', async () => {
      const client = new AbortController();
      const world = stage({ script: () => new Promise(() => {}) });
      const response = world.chat(CHAT, { signal: client.signal });
      await expect.poll(() => world.fake.requests.length).toBe(1);
      client.abort();
      expect((await response).status).toBe(499);
      expect(world.fake.requests[0]?.signal.aborted).toBe(true);
      expect(world.ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 0 } }]);
      expect(world.ledger.settled[0]?.cost).toBeGreaterThan(0n);
    });

    test('while its request waits for a connection to the provider is charged nothing', async () => {
      const client = new AbortController();
      const connecting = new UpstreamError('unsent', 'the request was aborted');
      const upstream: Upstream = ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(connecting)));
      const world = stage({ deps: { upstream } });
      const response = world.chat(CHAT, { signal: client.signal });
      await settleDown();
      client.abort();
      expect((await response).status).toBe(499);
      expect([world.ledger.liveReservations(), world.ledger.released.length, world.ledger.settled.length]).toEqual([
        0, 1, 0,
      ]);
    });

    test('before any provider was called is charged nothing', async () => {
      const client = new AbortController();
      const world = stage();
      const { reserve } = world.ledger;
      const leaving: typeof reserve = (request) => {
        client.abort();
        return reserve(request);
      };
      Object.assign(world.ledger, { reserve: leaving });
      expect((await world.chat(CHAT, { signal: client.signal })).status).toBe(499);
      expect([world.fake.requests.length, world.ledger.released.length, world.ledger.settled.length]).toEqual([
        0, 1, 0,
      ]);
    });

    test('before its body was read reserves nothing', async () => {
      const world = stage();
      expect((await world.chat(CHAT, { signal: AbortSignal.abort() })).status).toBe(499);
      expect([world.fake.requests.length, world.ledger.asked.length]).toEqual([0, 0]);
    });

    test('after the last word waits for the count, and is charged by it', async () => {
      let release: () => void = () => {};
      async function* body() {
        const encoder = new TextEncoder();
        yield encoder.encode(chunk({ content: 'all' }) + chunk({}, {}, 'stop'));
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        yield encoder.encode(USAGE_CHUNK + DONE);
      }
      const world = stage({ script: plays(body()) });
      const reader = (await world.chat(CHAT)).body?.getReader();
      await reader?.read();
      await reader?.cancel();
      await settleDown();
      expect(world.ledger.settled).toEqual([]);
      release();
      await settleDown();
      expect(world.ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 10, output: 3 } }]);
    });

    test('after the last word waits for the count no longer than a second', async () => {
      const world = stage({ script: plays(stuckAfter(chunk({ content: 'all' }) + chunk({}, {}, 'stop'))) });
      const reader = (await world.chat(CHAT)).body?.getReader();
      await reader?.read();
      await reader?.cancel();
      await world.clock.pass(1000);
      expect(world.ledger.settled).toMatchObject([{ estimated: true }]);
      expect(world.fake.requests[0]?.signal.aborted).toBe(true);
    });
  });

  describe('a stream at its reservation', () => {
    const words = Array.from({ length: 40 }, (_, index) => `w${index} `);
    /** The maximum of the prompt, and ten tokens of output. */
    const tight = (body: object) => {
      const bytes = JSON.stringify(body).length;
      return { [KEY]: keyRecord({ limit: ((bytes + 20) / 1_000_000).toFixed(9) }) };
    };

    test('is cut with finish_reason length and [DONE], never early, and never charged above the reservation', async () => {
      const { chat, ledger, fake, lines } = stage({ keys: tight(CHAT), script: plays(streamed(words)) });
      const response = await chat(CHAT);
      expect(response.headers.get('x-gateway-clamped-to')).toBe('10');
      const text = await response.text();
      const events = text
        .split('\n\n')
        .filter(Boolean)
        .map((event) => event.replace('data: ', ''));
      expect(text).toContain('w9 ');
      expect(text).not.toContain('w10 ');
      expect(events.at(-1)).toBe('[DONE]');
      expect(JSON.parse(events.at(-2) ?? '')).toEqual({
        id: 'c-1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'real',
        choices: [{ index: 0, delta: {}, finish_reason: 'length' }],
      });
      expect(fake.sent()).toMatchObject({ max_completion_tokens: 10 });
      expect(ledger.settled[0]?.cost).toBeLessThanOrEqual(ledger.asked[0]?.amount ?? 0n);
      expect(fake.requests[0]?.signal.aborted).toBe(true);
      expect(lines[0]?.fields).toMatchObject({ end: 'cut', status: 200 });
    });

    test('is cut at the same word, whatever its packets', async () => {
      const cutAfter = async (size: number) => {
        const all = streamed(words);
        const packets = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
          all.slice(at * size, (at + 1) * size).join(''),
        );
        const { chat, ledger, lines } = stage({ keys: tight(CHAT), script: plays(packets) });
        return { text: await (await chat(CHAT)).text(), settled: ledger.settled, line: lines[0]?.fields };
      };
      const single = await cutAfter(1);
      expect(single.text).toMatch(/w9 [^w]*length[^w]*$/);
      for (const size of [3, 7, 100]) expect(await cutAfter(size)).toEqual(single);
    });

    test('has its usage for a client that requested it', async () => {
      const { chat } = stage({ keys: tight(ASKING), script: plays(streamed(words)) });
      const events = (await (await chat(ASKING)).text()).split('\n\n').filter(Boolean);
      expect(JSON.parse(events.at(-2)?.replace('data: ', '') ?? '')).toMatchObject({
        choices: [],
        usage: { completion_tokens: expect.any(Number), prompt_tokens: expect.any(Number) },
      });
    });

    test('shows, books and charges no more tokens than its limit, however long the words were', async () => {
      const long = words.map((word) => word.repeat(10));
      const { chat, ledger } = stage({ keys: tight(ASKING), script: plays(streamed(long)) });
      const response = await chat(ASKING);
      expect(response.headers.get('x-gateway-clamped-to')).toBe('10');
      const events = (await response.text()).split('\n\n').filter(Boolean);
      const { usage } = JSON.parse(events.at(-2)?.replace('data: ', '') ?? '');
      const { input, output } = ledger.settled[0]?.tokens ?? {};
      expect(usage).toMatchObject({ completion_tokens: 10, prompt_tokens: input, total_tokens: (input ?? 0) + 10 });
      expect(output).toBe(10);
      expect(ledger.settled[0]?.cost).toBe(BigInt((input ?? 0) + 20) * 1000n);
    });

    test('is not cut if the provider stays within the limit', async () => {
      const { chat } = stage({ keys: tight(CHAT), script: plays(streamed(words.slice(0, 10))) });
      expect(await (await chat(CHAT)).text()).toContain('"finish_reason":"stop"');
    });

    test("is cut by the provider's own count", async () => {
      const usage = (output: number) => ({ usage: { prompt_tokens: 7, completion_tokens: output } });
      const body = [chunk({ content: 'four ' }, usage(4)), chunk({ content: 'eleven ' }, usage(11)), DONE];
      const { chat } = stage({ keys: tight(CHAT), script: plays(body) });
      const text = await (await chat(CHAT)).text();
      expect(text).toContain('four');
      expect(text).not.toContain('eleven');
    });
  });
});
