// Cooldowns: an entry that fails gets no requests for a while, and the gateway continues without it.
import { describe, expect, test } from 'vitest';
import { UpstreamError } from '#core/ports/upstream.ts';
import { entry, KEY, keyRecord, keyValueOf, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import {
  breaksAfter,
  chunk,
  completion,
  DONE,
  MESSAGES,
  type Script,
  SSE,
  sentText,
  streamed,
  type WireReply,
} from '../../../test/gateway/upstream.ts';
import { createCooldowns } from '../targets/cooldown.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, max_tokens: 5 };
const OK: WireReply = { body: completion('hello') };
const status = (code: number, headers: Record<string, string> = {}): WireReply => ({
  status: code,
  headers,
  body: '{}',
});
const named = (identifier: string, differences: object = {}) =>
  entry('gpt', { identifier, model: identifier, ...differences });
/** Replies by the model that is called; the last reply of a list is repeated. */
const by = (replies: Readonly<Record<string, ReadonlyArray<WireReply>>>): Script => {
  const left = new Map(Object.entries(replies).map(([name, list]) => [name, [...list]]));
  return (request) => {
    const list = left.get(JSON.parse(sentText(request)).model) ?? [OK];
    return (list.length > 1 ? list.shift() : list[0]) ?? OK;
  };
};
const COOLDOWN = { failures: 3, within: 30_000, duration: 30_000 };
const priority = (script: Script, routing: object = {}) =>
  stage({
    snapshot: snapshotOf([named('first'), named('spare', { priority: 1 })], {
      strategy: 'Priority',
      retries: 1,
      cooldown: COOLDOWN,
      ...routing,
    }),
    script,
  });
const asked = ({ fake }: ReturnType<typeof stage>) =>
  fake.requests.map((request) => String(JSON.parse(sentText(request)).model));

describe('an entry that fails', () => {
  test('three times in thirty seconds gets no requests for thirty seconds, and then gets them again', async () => {
    const world = priority(by({ first: [status(500), status(500), status(500), OK] }));
    for (let request = 0; request < 4; request += 1) expect((await world.chat(CHAT)).status).toBe(200);
    expect(asked(world)).toEqual(['first', 'spare', 'first', 'spare', 'first', 'spare', 'spare']);
    await world.clock.pass(29_999);
    await world.chat(CHAT);
    expect(asked(world).at(-1)).toBe('spare');
    await world.clock.pass(1);
    await world.chat(CHAT);
    expect(asked(world).at(-1)).toBe('first');
    expect(world.lines).toContainEqual({
      level: 'warn',
      message: 'a model entry cools down',
      fields: { identifier: 'first', seconds: 30, rateLimited: false, onlyFor: 'key-scope' },
    });
  });

  test('now and then does not cool down: failures are counted for a while only, and a success ends the count', async () => {
    const slow = priority(by({ first: [status(500)] }));
    for (let request = 0; request < 4; request += 1) {
      await slow.chat(CHAT);
      await slow.clock.pass(15_001);
    }
    expect(asked(slow).filter((name) => name === 'first')).toHaveLength(4);
    const mixed = priority(by({ first: [status(500), status(500), OK, status(500), status(500), OK] }));
    for (let request = 0; request < 6; request += 1) await mixed.chat(CHAT);
    expect(asked(mixed).filter((name) => name === 'first')).toHaveLength(6);
  });

  test.each<[string, WireReply]>([
    ['by a status of 5xx', status(503)],
    ["by refusing the entry's own key", status(401)],
    ['by a page in place of a reply', { body: '<html>' }],
    ['by a rate limit without a date', status(429)],
  ])('%s counts', async (_, reply) => {
    const world = priority(by({ first: [reply] }), { cooldown: { ...COOLDOWN, failures: 2 } });
    for (let request = 0; request < 3; request += 1) await world.chat(CHAT);
    expect(asked(world).filter((name) => name === 'first')).toHaveLength(2);
  });

  test.each([400, 413, 422])('because the request is wrong (%d) is not to blame', async (code) => {
    const world = priority(by({ first: [status(code)] }), { cooldown: { ...COOLDOWN, failures: 1 } });
    for (let request = 0; request < 3; request += 1) expect((await world.chat(CHAT)).status).toBe(code);
    expect(asked(world)).toEqual(['first', 'first', 'first']);
  });

  test('with a 404 is not to blame: one client cannot take it from the others', async () => {
    const world = priority(by({ first: [...Array(8).fill(status(404)), OK] }));
    for (let request = 0; request < 8; request += 1) expect((await world.chat(CHAT)).status).toBe(200);
    expect(asked(world)).toEqual(Array(8).fill(['first', 'spare']).flat());
    await world.chat(CHAT);
    expect(asked(world).at(-1)).toBe('first');
  });

  test('because its client left is not to blame', async () => {
    const world = priority(() => new Promise(() => {}), { cooldown: { ...COOLDOWN, failures: 1 } });
    for (let request = 1; request <= 2; request += 1) {
      const client = new AbortController();
      const response = world.chat({ ...CHAT, stream: true }, { signal: client.signal });
      await expect.poll(() => world.fake.requests.length).toBe(request);
      client.abort();
      expect((await response).status).toBe(499);
    }
    expect(asked(world)).toEqual(['first', 'first']);
  });

  test('because of its credential is called again as soon as that is renewed', async () => {
    let key = 'wrong';
    const world = stage({
      snapshot: snapshotOf([named('only')], { retries: 0, cooldown: { ...COOLDOWN, failures: 1 } }),
      script: ({ headers }) => (headers.authorization === 'Bearer right' ? OK : status(401)),
      deps: { credentials: { read: () => key } },
    });
    expect((await world.chat(CHAT)).status).toBe(502);
    expect((await world.chat(CHAT)).status).toBe(502);
    key = 'right';
    expect((await world.chat(CHAT)).status).toBe(200);
  });

  test('in the middle of a stream counts too', async () => {
    const broken: WireReply = { headers: SSE, body: [chunk({ content: 'half' })] };
    const world = priority(by({ first: [broken], spare: [{ headers: SSE, body: streamed(['x']) }] }), {
      cooldown: { ...COOLDOWN, failures: 1 },
    });
    const stream = { ...CHAT, stream: true };
    expect(await textOf(await world.chat(stream))).toContain('upstream_error');
    expect(await textOf(await world.chat(stream))).toContain(DONE);
    expect(asked(world)).toEqual(['first', 'spare']);
  });
});

const [OTHER_KEY, ELSEWHERE, THIRD] = [keyValueOf('another'), keyValueOf('elsewhere'), keyValueOf('third')];

describe('failures that a request may have caused', () => {
  const keyIn = (namespace: string, name: string) =>
    keyRecord({ scopeId: `${name}-scope`, name, object: { namespace, name } });
  const KEYS = {
    [KEY]: keyRecord(),
    [OTHER_KEY]: keyIn('default', 'other'),
    [ELSEWHERE]: keyIn('elsewhere', 'elsewhere'),
    [THIRD]: keyIn('third', 'third'),
  };
  const open = (script: Script, routing: object = {}) =>
    stage({
      snapshot: snapshotOf([named('first'), named('spare', { priority: 1 })], {
        strategy: 'Priority',
        retries: 1,
        cooldown: COOLDOWN,
        ...routing,
      }),
      script,
      keys: KEYS,
    });
  /** The entry that each of these requests called first. */
  const firstOf = async (world: ReturnType<typeof open>, key: string, times: number): Promise<unknown[]> => {
    const entries: unknown[] = [];
    for (let request = 0; request < times; request += 1) {
      const before = world.fake.requests.length;
      await world.chat(CHAT, { key });
      entries.push(asked(world)[before]);
    }
    return entries;
  };
  test.each<[string, () => WireReply | Promise<WireReply>]>([
    ['402', () => status(402)],
    ['403', () => status(403)],
    ['500', () => status(500)],
    ['503', () => status(503)],
    ['504 of a proxy', () => status(504)],
    ['a broken connection', () => ({ body: breaksAfter() })],
    ['silence beyond the first byte', () => Promise.reject(new UpstreamError('timeout', 'nothing came'))],
    ['429 without a date', () => status(429)],
    ['a page in place of a reply', () => ({ body: '<html>' })],
  ])('(%s) of one key begin a cooldown for that key only', async (_, failure) => {
    const world = open((request) => {
      const { model, max_tokens } = JSON.parse(sentText(request));
      return model === 'first' && max_tokens === 5 ? failure() : OK;
    });
    expect(await firstOf(world, KEY, 4)).toEqual(['first', 'first', 'first', 'spare']);
    const before = world.fake.requests.length;
    await world.chat({ ...CHAT, max_tokens: 6 }, { key: OTHER_KEY });
    expect(asked(world)[before]).toBe('first');
    await world.clock.pass(30_000);
    expect(await firstOf(world, KEY, 1)).toEqual(['first']);
  });

  test('with a 429 for more than a minute begin a cooldown of that length for that key only', async () => {
    const day = status(429, { 'retry-after': '86400' });
    const world = open(by({ first: [day, day, day, OK] }));
    expect(await firstOf(world, KEY, 4)).toEqual(['first', 'first', 'first', 'spare']);
    expect(await firstOf(world, OTHER_KEY, 1)).toEqual(['first']);
    await world.clock.pass(3_599_999);
    expect(await firstOf(world, KEY, 1)).toEqual(['spare']);
    await world.clock.pass(1);
    expect(await firstOf(world, KEY, 1)).toEqual(['first']);
  });

  test('of two keys of one namespace begin a cooldown for that namespace, of two namespaces for all', async () => {
    const world = open(by({ first: [status(500)] }));
    expect(await firstOf(world, KEY, 2)).toEqual(['first', 'first']);
    expect(await firstOf(world, OTHER_KEY, 2)).toEqual(['first', 'spare']);
    expect(await firstOf(world, KEY, 1)).toEqual(['spare']);
    // One failure still counts, and with two of this namespace it begins a cooldown for all.
    expect(await firstOf(world, ELSEWHERE, 3)).toEqual(['first', 'first', 'spare']);
    expect(await firstOf(world, THIRD, 1)).toEqual(['spare']);
  });

  test('of one key still count once with those of another key: few requests find an entry that is down', async () => {
    const world = open(by({ first: [status(500)] }));
    expect(await firstOf(world, KEY, 4)).toEqual(['first', 'first', 'first', 'spare']);
    expect(await firstOf(world, OTHER_KEY, 3)).toEqual(['first', 'first', 'spare']);
  });

  test.each<[string, Script]>([
    ['an entry that cannot be reached', () => Promise.reject(new UpstreamError('refused', 'nobody listens'))],
    ["an entry's own key that is wrong", () => status(401)],
    ['429 with retry-after', () => status(429, { 'retry-after': '30' })],
  ])('are not those of %s: these begin a cooldown for all keys', async (_, failure) => {
    const script: Script = (request, call) =>
      JSON.parse(sentText(request)).model === 'first' ? failure(request, call) : OK;
    const world = open(script, { cooldown: { ...COOLDOWN, failures: 1 } });
    expect(await firstOf(world, KEY, 2)).toEqual(['first', 'spare']);
    expect(await firstOf(world, OTHER_KEY, 1)).toEqual(['spare']);
  });
});

describe('our own error', () => {
  const bug = (): never => {
    throw new TypeError('our own bug');
  };
  const once = snapshotOf([named('first'), named('spare', { priority: 1 })], {
    strategy: 'Priority',
    cooldown: { ...COOLDOWN, failures: 1 },
  });
  async function* breaking(): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode(chunk({ content: 'half' }));
    bug();
  }

  test.each<[string, boolean, Script]>([
    ['when a provider is called', false, bug],
    ['when its reply is read', false, () => ({ body: breaking() })],
    ['when the beginning of its stream is read', true, () => ({ headers: SSE, body: { [Symbol.asyncIterator]: bug } })],
    ['in the middle of its stream', true, () => ({ headers: SSE, body: breaking() })],
  ])('%s begins no cooldown, is no failed attempt, and is logged with its cause', async (_, isStream, script) => {
    const world = stage({ snapshot: once, script: (request, call) => (call === 1 ? script(request, call) : OK) });
    const response = await world.chat({ ...CHAT, stream: isStream });
    await response.text().catch(() => undefined);
    await settleDown();
    if (!isStream) expect(response.status).toBe(500);
    expect(world.lines).toContainEqual(
      expect.objectContaining({ level: 'error', fields: expect.objectContaining({ why: 'our own bug' }) }),
    );
    expect(asked(world)).toEqual(['first']);
    await world.chat(CHAT);
    expect(asked(world)).toEqual(['first', 'first']);
    expect(world.counted.map(([name]) => name)).not.toContain('gateway_operator_cooldowns_total');
    expect(world.ledger.liveReservations()).toBe(0);
  });
});

describe('an entry that answers 429 with retry-after', () => {
  test('is not called for that time, after the first such answer', async () => {
    const world = priority(by({ first: [status(429, { 'retry-after': '7' }), OK] }));
    await world.chat(CHAT);
    await world.clock.pass(6_999);
    await world.chat(CHAT);
    expect(asked(world)).toEqual(['first', 'spare', 'spare']);
    await world.clock.pass(1);
    await world.chat(CHAT);
    expect(asked(world).at(-1)).toBe('first');
  });

  test('and is the only entry is called anyway, and its answer is passed on', async () => {
    const world = stage({
      snapshot: snapshotOf([named('only')], { retries: 0 }),
      script: by({ only: [status(429, { 'retry-after': '7' }), status(429, { 'retry-after': '5' }), OK] }),
    });
    expect((await world.chat(CHAT)).headers.get('retry-after')).toBe('7');
    await world.clock.pass(2_000);
    const response = await world.chat(CHAT);
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '5']);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_rate_limited' } });
    expect((await world.chat(CHAT)).status).toBe(200);
    expect(world.ledger.liveReservations()).toBe(0);
  });

  test('because one request is too large still serves other requests', async () => {
    const message =
      'Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 35064. The input or output tokens must be reduced in order to run successfully.';
    const error = { message, type: 'tokens', param: null, code: 'rate_limit_exceeded' };
    const large: WireReply = { ...status(429, { 'retry-after': '7' }), body: JSON.stringify({ error }) };
    const world = priority(by({ first: [large, large, large, OK] }));
    for (let request = 0; request < 4; request += 1) expect((await world.chat(CHAT)).status).toBe(200);
    expect(asked(world)).toEqual(['first', 'spare', 'first', 'spare', 'first', 'spare', 'first']);
  });
});

describe('when all entries of a model cool down', () => {
  test('the one whose cooldown ends first is called anyway', async () => {
    const world = priority(
      by({
        first: [status(429, { 'retry-after': '20' }), OK],
        spare: [status(429, { 'retry-after': '10' }), OK],
      }),
    );
    expect((await world.chat(CHAT)).status).toBe(429);
    expect((await world.chat(CHAT)).status).toBe(200);
    expect(asked(world)).toEqual(['first', 'spare', 'spare']);
    expect(world.lines.at(-1)?.fields).toMatchObject({
      skipped: ['first: cools down after failures', 'spare: cools down after failures'],
    });
  });

  test('because the attempts of one request failed, that request continues within its retries', async () => {
    const world = stage({
      snapshot: snapshotOf([named('only')], { retries: 2, cooldown: { ...COOLDOWN, failures: 1 } }),
      script: by({ only: [status(500), status(500), OK] }),
    });
    const response = world.chat(CHAT);
    for (const pause of [100, 200]) {
      await settleDown();
      await world.clock.pass(pause);
    }
    expect((await response).status).toBe(200);
  });
});

test('the attempts of one request count as one failure: one bad request begins no cooldown for all', async () => {
  const world = priority(by({ first: [status(500), status(500), status(500), status(500)], spare: [status(500)] }), {
    retries: 5,
    cooldown: { ...COOLDOWN, failures: 2 },
  });
  const bad = world.chat(CHAT);
  for (let pause = 0; pause < 6; pause += 1) {
    await settleDown();
    await world.clock.pass(1000);
  }
  expect((await bad).status).toBe(502);
  expect(asked(world)).toEqual(['first', 'spare', 'first', 'spare', 'first', 'spare']);
  expect(world.counted.map(([name]) => name)).not.toContain('gateway_operator_entries_put_aside_total');
});

test('LeastBusy sends each request to the entry with the fewest in flight, streams counted until they end', async () => {
  const answers: Array<() => void> = [];
  const waiting: Script = () => new Promise((resolve) => answers.push(() => resolve(OK)));
  const world = stage({
    snapshot: snapshotOf(
      ['a', 'b', 'c'].map((name) => named(name)),
      { strategy: 'LeastBusy' },
    ),
    script: waiting,
  });
  const six = Array.from({ length: 6 }, () => world.chat({ ...CHAT, max_tokens: 1 }));
  await expect.poll(() => world.fake.requests.length).toBe(6);
  expect([...asked(world)].sort()).toEqual(['a', 'a', 'b', 'b', 'c', 'c']);
  const [quick] = asked(world).slice(0, 1);
  answers[0]?.();
  await six[0];
  const seventh = world.chat(CHAT);
  await settleDown();
  expect(asked(world).at(-1)).toBe(quick);
  for (const answer of answers) answer();
  await Promise.all([...six, seventh]);

  const streams = stage({
    snapshot: snapshotOf(
      ['a', 'b'].map((name) => named(name)),
      { strategy: 'LeastBusy' },
    ),
    script: () => ({ headers: SSE, body: streamed(['x']) }),
    room: 1,
  });
  const open = await streams.chat({ ...CHAT, stream: true });
  await textOf(await streams.chat({ ...CHAT, stream: true }));
  await textOf(await streams.chat({ ...CHAT, stream: true }));
  expect(asked(streams)).toEqual(['a', 'b', 'b']);
  await textOf(open);
});

test('states of entries are bounded: those of edited instances are forgotten, and requests in flight still end', () => {
  const { deps } = stage();
  const cooldowns = createCooldowns(deps);
  const keyOf = (key: number) => ({ scopeId: `key ${key}`, object: { namespace: `${key}`, name: 'key' } });
  const called = (at: number) => ({ entry: entry('gpt', { identifier: `entry ${at}` }), base: '', credentials: {} });
  const leave = cooldowns.enter('entry 0');
  for (let at = 0; at < 5_000; at += 1) {
    cooldowns.recordFailure(called(at), COOLDOWN, { isFirst: true, retryAfter: 60 });
  }
  const known = Array.from({ length: 5_000 }, (_, at) => cooldowns.endOfCooldown(called(at), keyOf(0))).filter(
    (until) => until !== undefined,
  );
  expect(known.length).toBeGreaterThan(512);
  expect(known.length).toBeLessThan(2_000);
  expect(cooldowns.endOfCooldown(called(4_999), keyOf(0))).toBeDefined();
  cooldowns.enter('entry 0');
  leave();
  expect(cooldowns.inFlight('entry 0')).toBe(1);
  // The same for cooldowns of single VirtualKeys.
  for (let key = 0; key < 10_000; key += 1) {
    for (let time = 0; time < 3; time += 1)
      cooldowns.recordFailure(called(9_999), COOLDOWN, { isFirst: true, causingKey: keyOf(key) });
    cooldowns.recordSuccess('entry 9999');
  }
  const own = Array.from({ length: 10_000 }, (_, key) => cooldowns.endOfCooldown(called(9_999), keyOf(key)));
  expect(own.filter((until) => until !== undefined).length).toBeLessThan(5_000);
});

test('a clock that is set back or ahead changes no cooldown', () => {
  const { deps, clock } = stage();
  let wallTime = clock.now();
  const cooldowns = createCooldowns({ ...deps, clock: { now: () => wallTime }, intervalClock: clock });
  const key = { scopeId: 'key', object: { namespace: 'apps', name: 'key' } };
  const called = { entry: entry('gpt'), base: '', credentials: {} };
  const isCoolingDown = () => cooldowns.endOfCooldown(called, key) !== undefined;
  cooldowns.recordFailure(called, COOLDOWN, { isFirst: true, retryAfter: 60 });
  wallTime += 3_600_000;
  clock.tick(59_999);
  expect(isCoolingDown()).toBe(true);
  wallTime -= 7_200_000;
  clock.tick(1);
  expect(isCoolingDown()).toBe(false);
  // Failures in the time `within` begin a cooldown, whatever the clock shows.
  for (let failure = 0; failure < COOLDOWN.failures; failure += 1) {
    cooldowns.recordFailure(called, COOLDOWN, { isFirst: true });
    wallTime += 3_600_000;
  }
  expect(isCoolingDown()).toBe(true);
});

test('a request that the platform ends without a notice counts at its entry for a minute', () => {
  const { deps, clock } = stage();
  const cooldowns = createCooldowns({ ...deps, memory: { limit: 1, own: 0, maxRequestTime: 60_000 } });
  cooldowns.enter('a');
  clock.tick(30_000);
  const leave = cooldowns.enter('a');
  expect(cooldowns.inFlight('a')).toBe(2);
  clock.tick(30_000);
  expect(cooldowns.inFlight('a')).toBe(1);
  leave();
  expect(cooldowns.inFlight('a')).toBe(0);
});
