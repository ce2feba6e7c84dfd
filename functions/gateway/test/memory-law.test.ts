// Memory of a request: never more than its share of the budget, whatever its body, while the provider thinks and while
// it answers.
import { beforeAll, describe, expect, test } from 'vitest';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { ProcessMemory } from '#core/ports/platform.ts';
import type { UpstreamResponse } from '#core/ports/upstream.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { memory } from '../../../test/gateway/memory.ts';
import { PAIRS, type Pair } from '../../../test/gateway/pairs.ts';
import { shapesOf } from '../../../test/gateway/request-shapes.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { REPLIES } from '../../../test/gateway/stream-shapes.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { SSE } from '../../../test/gateway/upstream.ts';
import { createGateway, createSharedState } from '../app.ts';

/** Everything takes minutes; some of it shows a mistake as well. */
const IS_ALL = process.env.TEST_CAMPAIGNS !== undefined;
const SOME = ['one long text', 'one long name', 'a member in other spellings', 'marked ids'];
const SOME_PAIRS = ['chat for openai', 'chat for anthropic', 'responses for openai'];
/**
 * The pair that gets every shape with TEST_CAMPAIGNS; the others get some, because each measurement collects all
 * garbage.
 */
const ALL_SHAPES = ['chat for openai'];
/** Bytes of a body, and how many requests there are. */
const SIZE = 300_000;
const REQUESTS = 8;
/** Bytes that a request may keep in addition to its share: those of its own objects. */
const BESIDE = 96 * 1024;

const encoder = new TextEncoder();
const CHOSEN = PAIRS.filter(
  ({ provider, label }) => provider.cloud === undefined && (IS_ALL || SOME_PAIRS.includes(label)),
);

/**
 * A gateway whose provider keeps nothing of a request, and streams after `begin`. `repeated`: values of the request in
 * each event.
 */
function open(pair: Pair, repeated = 0, memory?: ProcessMemory) {
  const { name, model } = pair;
  const names = ['apiKey', 'apiBase'];
  const credentials = Object.fromEntries(names.map((one) => [one, { secret: 's', secretKey: one }]));
  const begin = Promise.withResolvers<void>();
  const called = { requests: 0 };
  const { deps, clock } = stage({
    snapshot: { ...snapshotOf([entry('gpt', { provider: name, model, credentials })]), storeResponses: true },
    keys: { [KEY]: keyRecord({ limit: '1000000000' }) },
    deps: {
      credentials: { read: (_, one) => (one === 'apiBase' ? 'https://provider.test' : `value-of-${one}`) },
      upstream: async (): Promise<UpstreamResponse> => {
        called.requests += 1;
        await begin.promise;
        return { status: 200, headers: SSE, body: streamOf(pair, repeated) };
      },
      // A log that keeps its lines would keep the names in them.
      log: { info: () => {}, warn: () => {}, error: () => {} },
      ...(memory && { memory }),
    },
  });
  const shared = createSharedState(deps);
  return {
    handle: createGateway(deps, shared),
    kept: shared.memoryBudget.kept,
    called,
    begin: begin.resolve,
    pass: clock.pass,
  };
}

/** A stream that has begun, as the provider of this API begins it. */
async function* streamOf({ api, provider }: Pair, repeated: number): AsyncGenerator<Uint8Array> {
  const { events } = REPLIES[spokenBy(api.name, provider.dialect)];
  const [of] = Object.values(events);
  const tools = `"tools":[${'{},'.repeat(repeated)}{}],`;
  const holder = /(?:"response":|"message":|^data: )\{/;
  const repeat = (event: string) => (repeated === 0 ? event : event.replace(holder, (begin) => begin + tools));
  for (const event of of?.(5).slice(0, 3) ?? []) yield encoder.encode(repeat(event));
  await new Promise(() => {});
}

function spokenBy(api: string, dialect: string): 'chat' | 'messages' | 'responses' {
  if (api === 'responses') return 'responses';
  return dialect === 'anthropic' ? 'messages' : 'chat';
}

/** A client that sends this body and waits. */
function toExchange(path: string, sent: Uint8Array): HttpExchange {
  const headers = new Map([
    ['authorization', `Bearer ${KEY}`],
    ['content-length', `${sent.length}`],
  ]);
  let body: Uint8Array | undefined = sent;
  return {
    method: 'POST',
    path,
    query: '',
    begin: () => {},
    flush: () => {},
    hasBegun: () => false,
    write: () => true,
    drained: async () => {},
    end: () => {},
    destroy: () => {},
    hasLeft: () => false,
    onLeave: () => {},
    stopReading: () => {},
    header: (name) => headers.get(name),
    readBody: async (accept) => {
      const read = body ?? new Uint8Array(0);
      body = undefined;
      return accept(read.length) ?? read;
    },
  };
}

describe.each(CHOSEN)('$label', (pair) => {
  const { api } = pair;
  const shapes = shapesOf(api.name).filter(
    ({ name }) => (IS_ALL && ALL_SHAPES.includes(pair.label)) || SOME.includes(name),
  );

  test.each(shapes)('a request of many: $name', async ({ body }) => {
    await expectRoom(pair, body);
  });
});

test.each(CHOSEN.filter(({ api }) => api.hasOutput))(
  'a stream of $label keeps nothing of the request that its provider repeats',
  async (pair) => {
    const { handle, begin } = open(pair, 50_000);
    const [shape] = shapesOf(pair.api.name);
    const sent = shape?.body(10).replace(/^\{/, '{"stream":true,') ?? '';
    const before = await memory();
    for (let request = 0; request < REQUESTS; request += 1)
      void handle(toExchange(pair.api.path, encoder.encode(sent)));
    begin();
    await settleDown();
    expect(((await memory()) - before) / REQUESTS).toBeLessThan(BESIDE);
  },
);

test('streams whose clients read nothing stay within the memory budget, and the others are disconnected', async () => {
  const [pair] = CHOSEN.filter(({ api }) => api.name === 'responses');
  if (pair === undefined) throw new Error('no pair here has responses');
  const { handle, kept, begin, pass } = open(pair, 50_000, { limit: 128 * 2 ** 20, own: 2 ** 27 });
  const [shape] = shapesOf(pair.api.name);
  const sent = encoder.encode(shape?.body(10).replace(/^\{/, '{"stream":true,') ?? '');
  const clients = Array.from({ length: 100 }, () => {
    const taken = Promise.withResolvers<void>();
    const client = { ...toExchange(pair.api.path, sent), write: () => false, drained: () => taken.promise };
    return { ...client, isCut: false, take: taken.resolve };
  });
  for (const client of clients) {
    client.destroy = (last = []) => {
      // Bytes that were sent before wait for the client too.
      if (last.length > 0) return;
      client.isCut = true;
      client.take();
    };
    void handle(client);
  }
  begin();
  await settleDown();
  const ofAll = kept();
  // The deadline of the stream ends it, and its bytes still wait.
  await pass(6_000);
  await settleDown();
  expect(kept()).toBe(ofAll);
  const left = clients.filter(({ isCut }) => !isCut);
  expect(left.length).toBeGreaterThan(10);
  expect(kept()).toBeGreaterThan(left.length * 150_000);
  expect(kept()).toBeLessThan(8 * 2 ** 20);
  expect(left.length).toBeLessThan(60);
  for (const { take } of left) take();
  await settleDown();
  expect(kept()).toBe(0);
});

test('reports whose clients read nothing stay within the memory budget, and others are refused', async () => {
  const models = Array.from({ length: 512 }, (_, at) => `${at}`.padStart(256, 'm'));
  const { deps } = stage({
    keys: { [KEY]: keyRecord({ models }) },
    deps: { memory: { limit: 128 * 2 ** 20, own: 2 ** 27 } },
  });
  const shared = createSharedState(deps);
  const handle = createGateway(deps, shared);
  const statuses: number[] = [];
  const taken = Promise.withResolvers<void>();
  for (let request = 0; request < 100; request += 1) {
    const begin = (status: number) => void statuses.push(status);
    void handle({ ...toExchange('/key', encoder.encode('')), method: 'GET', begin, drained: () => taken.promise });
  }
  await settleDown();
  expect(statuses).toHaveLength(100);
  expect(shared.memoryBudget.kept()).toBeGreaterThan(statuses.filter((status) => status === 200).length * 131_072);
  expect(shared.memoryBudget.kept()).toBeLessThan(8 * 2 ** 20);
  expect(statuses).toContain(503);
  taken.resolve();
  await settleDown();
  expect(shared.memoryBudget.kept()).toBe(0);
});

async function expectRoom(pair: Pair, body: (size: number) => string): Promise<void> {
  const { api } = pair;
  const isStream = api.name !== 'embeddings';
  const text = (size: number) => (isStream ? body(size).replace(/^\{/, '{"stream":true,') : body(size));
  const size = Math.ceil((1000 * SIZE) / encoder.encode(text(1000)).length);
  const sent = text(size);
  const { handle, kept, called, begin } = open(pair);
  const before = await memory();
  for (let request = 0; request < REQUESTS; request += 1) void handle(toExchange(api.path, encoder.encode(sent)));
  await settleDown();
  // Bodies that are refused keep nothing.
  expect(((await memory()) - before) / REQUESTS).toBeLessThan(kept() / REQUESTS + BESIDE);
  if (called.requests < REQUESTS || !isStream) return;
  begin();
  await settleDown();
  expect(((await memory()) - before) / REQUESTS).toBeLessThan(BESIDE);
  expect(kept()).toBe(0);
}

beforeAll(async () => {
  // Compiled code takes memory too.
  const [shape] = shapesOf('chat').filter(({ name }) => SOME.includes(name));
  for (const pair of CHOSEN) if (shape !== undefined) await expectRoom(pair, shape.body).catch(() => undefined);
});
