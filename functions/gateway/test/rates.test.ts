import { beforeEach, describe, expect, test } from 'vitest';
import { createScenario, type Scenario } from '#core/ledger/test/scenario.promises.ts';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import type { Ledger } from '#core/ports/ledger.ts';
import type { SpecRateLimits } from '#core/ports/policy.ts';
import { entry, KEY, keyRecord, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, type World } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { completion, DONE, MESSAGES, SSE, sentText, streamed } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES };
let scenario: Scenario;
let ledger: Ledger;

beforeEach(async () => {
  scenario = createScenario();
  const process = scenario.process();
  await process.start();
  ledger = process;
});

/** A gateway over a real ledger, on the ledger's clock. */
function stageWith(limits: SpecRateLimits, more: World = {}) {
  const deps = { ledger, ids: scenario.ids, clock: scenario.time.clock, timer: scenario.time.timer };
  return stage({ keys: { [KEY]: keyRecord({ limits }) }, ...more, deps });
}
const free = (differences: Partial<SnapshotEntry> = {}) =>
  snapshotOf([entry('gpt', { price: { input: '0', output: '0' }, ...differences })]);
const ratesIn = (response: Response) =>
  Object.fromEntries([...response.headers].filter(([name]) => name.startsWith('x-ratelimit')));

test('every answer has the rest of the rates, in the headers of OpenAI', async () => {
  await scenario.time.advance(500);
  const { chat } = stageWith({ rpmLimit: 3, tpmLimit: 10_000 });
  const response = await chat({ ...CHAT, max_completion_tokens: 1000 });
  expect(response.status).toBe(200);
  const estimate = Math.ceil(JSON.stringify({ ...CHAT, max_completion_tokens: 1000 }).length / 3);
  expect(ratesIn(response)).toEqual({
    'x-ratelimit-limit-requests': '3',
    'x-ratelimit-remaining-requests': '2',
    'x-ratelimit-reset-requests': '1m0s',
    'x-ratelimit-limit-tokens': '10000',
    'x-ratelimit-remaining-tokens': String(10_000 - 1000 - estimate),
    // The last of them leave the window with the end of the next minute.
    'x-ratelimit-reset-tokens': '2m0s',
  });
  await scenario.time.advance(2000);
  const next = await chat({ ...CHAT, max_completion_tokens: 1000 });
  // The first request used 15 tokens, whatever its estimate was.
  expect(ratesIn(next)).toMatchObject({
    'x-ratelimit-remaining-requests': '1',
    'x-ratelimit-remaining-tokens': String(10_000 - 15 - 1000 - estimate),
  });
});

test('a request above the limit is refused with the scope, the limit and an exact retry-after, and reaches no provider', async () => {
  const { chat, fake, lines } = stageWith({ rpmLimit: 1 });
  await chat(CHAT);
  await scenario.time.advance(20_000);
  const refused = await chat(CHAT);
  // The minute of the request counts in full until the next one has begun.
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
  await scenario.time.advance(40_000);
  expect((await chat(CHAT)).status).toBe(429);
  await scenario.time.advance(1);
  expect((await chat(CHAT)).status).toBe(200);
});

test('limits of the user and the teams apply too, also without a budget and for a free model', async () => {
  const team = scope('team', { limits: { rpmLimit: 1 } });
  const keys = { [KEY]: keyRecord({ limit: undefined }, [team]) };
  const { chat } = stageWith({}, { keys, snapshot: free() });
  expect((await chat(CHAT)).status).toBe(200);
  const refused = await chat(CHAT);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('of team "a team"') } });
});

test('a request that its budget refuses counts in no rate, and shows the rest of the rates', async () => {
  const keys = { [KEY]: keyRecord({ limit: '0.000001', limits: { rpmLimit: 1 } }) };
  const { chat } = stageWith({}, { keys, snapshot: snapshotOf([entry('gpt'), entry('free', free().models[0])]) });
  const refused = await chat(CHAT);
  expect(await refused.json()).toMatchObject({ error: { code: 'budget_exceeded' } });
  expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('1');
});

test('a maximum number of streams runs concurrently, each until its last byte', async () => {
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
  const asked = chat({ ...CHAT, stream: true });
  await scenario.time.advance(150);
  const refused = await asked;
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  expect(await refused.json()).toMatchObject({
    error: { message: expect.stringContaining('1 request at the same time') },
  });
  const text = first.text();
  finish();
  expect(await text).toContain(DONE);
  expect((await chat({ ...CHAT, stream: true })).status).toBe(200);
});

test('a request without a call of a provider is not counted, a request with a failed call is', async () => {
  const unreachable = free({ provider: 'nobody-knows' });
  const lost = stageWith({ rpmLimit: 1 }, { snapshot: unreachable });
  for (let turn = 0; turn < 3; turn += 1) expect((await lost.chat(CHAT)).status).toBe(503);
  const failing = stageWith({ rpmLimit: 1 }, { script: () => ({ status: 400, body: '{}' }) });
  const failed = await failing.chat(CHAT);
  expect(failed.status).toBe(400);
  expect(failed.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  expect((await failing.chat(CHAT)).status).toBe(429);
});

test('tokens per minute are the used ones, also without a limit of the reply', async () => {
  const usage = { prompt_tokens: 900, completion_tokens: 1100 };
  const { chat } = stageWith({ tpmLimit: 2000 }, { script: () => ({ body: completion('hello', usage) }) });
  expect((await chat(CHAT)).status).toBe(200);
  const refused = await chat(CHAT);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({
    error: { message: expect.stringContaining('2000 tokens per minute') },
  });
});

test('without limits there are no headers of rates', async () => {
  const { chat } = stageWith({});
  expect(ratesIn(await chat(CHAT))).toEqual({});
});

describe('a model entry with a limit of requests or tokens per minute', () => {
  const two = (first: Partial<SnapshotEntry>, second: Partial<SnapshotEntry>) =>
    snapshotOf(
      [
        entry('gpt', { identifier: 'one', model: 'one', ...first }),
        entry('gpt', { identifier: 'two', model: 'two', priority: 1, ...second }),
      ],
      { strategy: 'Priority' },
    );
  const asked = ({ fake }: ReturnType<typeof stage>) =>
    fake.requests.map((request) => String(JSON.parse(sentText(request)).model));

  test('is passed over while it is full, for another entry of the model; 429 if all are full', async () => {
    const world = stageWith({}, { snapshot: two({ rpm: 1 }, { rpm: 2 }) });
    for (let turn = 0; turn < 3; turn += 1) expect((await world.chat(CHAT)).status).toBe(200);
    await scenario.time.advance(10_000);
    const refused = await world.chat(CHAT);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '51']);
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'rate_limit_exceeded',
        message: 'The rate limits of all providers of the model "gpt" are reached. Try again in 51 s.',
      },
    });
    expect(asked(world)).toEqual(['one', 'two', 'two']);
    expect(world.lines[1]?.fields).toMatchObject({
      identifier: 'two',
      skipped: ['one: full: its requests per minute are used up'],
    });
    await scenario.time.advance(50_001);
    await world.chat(CHAT);
    expect(asked(world).at(-1)).toBe('one');
  });

  test('counts the tokens of its own replies, in all processes', async () => {
    const usage = { prompt_tokens: 900, completion_tokens: 200 };
    const snapshot = two({ tpm: 1100 }, {});
    const world = stageWith({}, { snapshot, script: () => ({ body: completion('hello', usage) }) });
    const other = stageWith({}, { snapshot, script: () => ({ body: completion('hello', usage) }) });
    const short = { ...CHAT, max_completion_tokens: 100 };
    await world.chat(short);
    await other.chat(short);
    expect([asked(world), asked(other)]).toEqual([['one'], ['two']]);
  });

  test('counts a long reply with a usual size, so that others are served', async () => {
    const never = new Promise<never>(() => {});
    const snapshot = two({ tpm: 3000 }, {});
    const world = stageWith({}, { snapshot, script: () => never });
    for (const long of [{ max_tokens: 100_000 }, { max_tokens: 1000, n: 20 }, {}])
      void world.chat({ ...CHAT, ...long });
    await settleDown();
    expect(asked(world)).toEqual(['one', 'one', 'two']);
  });

  test('is checked again after another one has failed, and is not called while it is full', async () => {
    const script: World['script'] = (request) =>
      sentText(request).includes('"one"') ? { status: 500, body: '{}' } : { body: completion('x') };
    const routing = { snapshot: two({}, { rpm: 1 }), script };
    const world = stageWith({}, routing);
    expect((await world.chat(CHAT)).status).toBe(200);
    const failed = world.chat(CHAT);
    await scenario.time.advance(2000);
    expect((await failed).status).toBe(502);
    expect(asked(world)).toEqual(['one', 'two', 'one', 'one', 'one']);
  });

  test('is checked too if it replaces one that cools down since the reservation', async () => {
    const script: World['script'] = (request) =>
      sentText(request).includes('"one"')
        ? { status: 429, headers: { 'retry-after': '20' }, body: '{}' }
        : { body: completion('x') };
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let reservations = 0;
    const late: Ledger = {
      ...ledger,
      reserve: async (request) => {
        reservations += 1;
        const isLate = reservations > 1;
        const held = await ledger.reserve(request);
        if (isLate) await gate;
        return held;
      },
    };
    const deps = { ledger: late, ids: scenario.ids, clock: scenario.time.clock, timer: scenario.time.timer };
    const world = stage({ snapshot: two({ rpm: 5 }, { rpm: 2 }), script, deps });
    const both = [world.chat(CHAT), world.chat(CHAT), world.chat(CHAT)];
    expect((await both[0])?.status).toBe(200);
    open();
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 200, 429]);
    expect(asked(world)).toEqual(['one', 'two', 'two']);
  });

  test('whose every attempt counts: a retry is a request too', async () => {
    const script: World['script'] = (_, call) => (call === 1 ? { status: 500, body: '{}' } : { body: completion('x') });
    const world = stageWith({}, { snapshot: snapshotOf([entry('gpt', { rpm: 2 })]), script });
    const first = world.chat(CHAT);
    await scenario.time.advance(1000);
    expect((await first).status).toBe(200);
    expect((await world.chat(CHAT)).status).toBe(429);
    expect(asked(world)).toHaveLength(2);
  });

  test('counts nothing for a key whose request is refused', async () => {
    const world = stageWith({ rpmLimit: 1 }, { snapshot: two({ rpm: 2 }, { rpm: 1 }) });
    const statuses = [];
    for (let turn = 0; turn < 3; turn += 1) statuses.push((await world.chat(CHAT)).status);
    expect(statuses).toEqual([200, 429, 429]);
    await scenario.time.advance(61_000);
    await world.chat(CHAT);
    expect(asked(world)).toEqual(['one', 'one']);
  });

  test('is chosen by LeastBusy as without limits: concurrent requests are spread', async () => {
    const names = ['one', 'two', 'three'];
    const entries = names.map((name) => entry('gpt', { identifier: name, model: name, rpm: 100 }));
    const never = new Promise<never>(() => {});
    const world = stageWith({}, { snapshot: snapshotOf(entries, { strategy: 'LeastBusy' }), script: () => never });
    for (let request = 0; request < 6; request += 1) void world.chat(CHAT);
    const look = async () => {
      await scenario.time.advance(5);
      return world.fake.requests.length;
    };
    await expect.poll(look).toBe(6);
    expect(asked(world).sort()).toEqual(['one', 'one', 'three', 'three', 'two', 'two']);
  });
});
