import { beforeEach, expect, test } from 'vitest';
import { createScene, type Scene } from '#core/ledger/scene.promises.ts';
import type { Ledger } from '#core/ports/ledger.ts';
import type { RateLimits } from '#core/ports/policy.ts';
import type { SnapshotEntry } from '#core/snapshot.ts';
import { stage, type World } from './gateway.fixture.ts';
import { entry, KEY, keyRecord, scope, snapshotOf } from './instance.fixture.ts';
import { completion, DONE, MESSAGES, SSE, streamed } from './upstream.fixture.ts';

const CHAT = { model: 'gpt', messages: MESSAGES };
let scene: Scene;
let ledger: Ledger;

beforeEach(async () => {
  scene = createScene();
  const process = scene.process();
  await process.start();
  ledger = process;
});

/** A gateway over a real ledger, on the ledger's clock. */
function stageWith(limits: RateLimits, more: World = {}) {
  const deps = { ledger, clock: scene.time.clock, timer: scene.time.timer };
  return stage({ keys: { [KEY]: keyRecord({ limits }) }, ...more, deps });
}
const free = (differences: Partial<SnapshotEntry> = {}) =>
  snapshotOf([entry('gpt', { price: { input: '0', output: '0' }, ...differences })]);
const ratesIn = (response: Response) =>
  Object.fromEntries([...response.headers].filter(([name]) => name.startsWith('x-ratelimit')));

test('every answer says what is left, in the words of OpenAI', async () => {
  await scene.time.advance(500);
  const { chat } = stageWith({ rpmLimit: 3, tpmLimit: 10_000 });
  const response = await chat({ ...CHAT, max_completion_tokens: 1000 });
  expect(response.status).toBe(200);
  const estimate = Math.ceil(JSON.stringify({ ...CHAT, max_completion_tokens: 1000 }).length / 3);
  expect(ratesIn(response)).toEqual({
    'x-ratelimit-limit-requests': '3',
    'x-ratelimit-remaining-requests': '2',
    'x-ratelimit-reset-requests': '1m1s',
    'x-ratelimit-limit-tokens': '10000',
    'x-ratelimit-remaining-tokens': String(10_000 - 1000 - estimate),
    'x-ratelimit-reset-tokens': '1m1s',
  });
  await scene.time.advance(2000);
  const next = await chat({ ...CHAT, max_completion_tokens: 1000 });
  // The first used 15 tokens, whatever it was expected to.
  expect(ratesIn(next)).toMatchObject({
    'x-ratelimit-remaining-requests': '1',
    'x-ratelimit-remaining-tokens': String(10_000 - 15 - 1000 - estimate),
  });
});

test('a request too many is refused with the scope, the limit and a true retry-after, and reaches nobody', async () => {
  const { chat, fake, lines } = stageWith({ rpmLimit: 1 });
  await chat(CHAT);
  await scene.time.advance(20_000);
  const refused = await chat(CHAT);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '41']);
  expect(ratesIn(refused)).toMatchObject({
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '41s',
  });
  expect(await refused.json()).toMatchObject({
    error: {
      code: 'rate_limit_exceeded',
      type: 'rate_limit_error',
      message: 'The rate limit of key "billing" is reached: 1 request per minute. Try again in 41 s.',
    },
  });
  expect(fake.requests).toHaveLength(1);
  expect(lines.at(-1)?.fields).toMatchObject({ code: 'rate_limit_exceeded', scope: 'key/billing', rate: 'requests' });
  await scene.time.advance(40_999);
  expect((await chat(CHAT)).status).toBe(429);
  await scene.time.advance(1);
  expect((await chat(CHAT)).status).toBe(200);
});

test('limits of the user and the teams hold too, also without a budget and for a free model', async () => {
  const team = scope('team', { limits: { rpmLimit: 1 } });
  const keys = { [KEY]: keyRecord({ limit: undefined }, [team]) };
  const { chat } = stageWith({}, { keys, snapshot: free() });
  expect((await chat(CHAT)).status).toBe(200);
  const refused = await chat(CHAT);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('of team "a team"') } });
});

test('a request that its budget refuses counts in no rate, and says what is left of it', async () => {
  const keys = { [KEY]: keyRecord({ limit: '0.000001', limits: { rpmLimit: 1 } }) };
  const { chat } = stageWith({}, { keys, snapshot: snapshotOf([entry('gpt'), entry('free', free().models[0])]) });
  const refused = await chat(CHAT);
  expect(await refused.json()).toMatchObject({ error: { code: 'budget_exceeded' } });
  expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('1');
});

test('so many streams run at once, each until its last byte', async () => {
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const script = (_: unknown, call: number) => ({
    headers: SSE,
    body: (async function* () {
      for (const piece of streamed(['hello'])) {
        if (piece === DONE && call === 1) await finished;
        yield new TextEncoder().encode(piece);
      }
    })(),
  });
  const { chat } = stageWith({ maxParallelRequests: 1 }, { script });
  const first = await chat({ ...CHAT, stream: true });
  const refused = await chat({ ...CHAT, stream: true });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  expect(await refused.json()).toMatchObject({
    error: { message: expect.stringContaining('1 request at the same time') },
  });
  const text = first.text();
  finish();
  expect(await text).toContain(DONE);
  expect((await chat({ ...CHAT, stream: true })).status).toBe(200);
});

test('a request that no provider could be called for is not counted, one that a provider failed is', async () => {
  const unreachable = free({ provider: 'nobody-knows' });
  const lost = stageWith({ rpmLimit: 1 }, { snapshot: unreachable });
  for (let turn = 0; turn < 3; turn += 1) expect((await lost.chat(CHAT)).status).toBe(503);
  const failing = stageWith({ rpmLimit: 1 }, { script: () => ({ status: 400, body: '{}' }) });
  const failed = await failing.chat(CHAT);
  expect(failed.status).toBe(400);
  expect(failed.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  expect((await failing.chat(CHAT)).status).toBe(429);
});

test('tokens per minute are those that a reply really used, also when nobody said how long it may be', async () => {
  const usage = { prompt_tokens: 900, completion_tokens: 1100 };
  const { chat } = stageWith({ tpmLimit: 2000 }, { script: () => ({ body: completion('hello', usage) }) });
  expect((await chat(CHAT)).status).toBe(200);
  const refused = await chat(CHAT);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({
    error: { message: expect.stringContaining('2000 tokens per minute') },
  });
});

test('where nothing is limited nothing is said of rates', async () => {
  const { chat } = stageWith({});
  expect(ratesIn(await chat(CHAT))).toEqual({});
});
