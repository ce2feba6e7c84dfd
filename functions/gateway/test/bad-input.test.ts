// Bad input on every path that spends, for every dialect: no limit, prompt, key or stream makes the gateway fail or
// charge more than it reserved.
import { describe, expect, test } from 'vitest';
import { entry, KEY, keyRecord, keyValueOf, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { type Script, SSE, type WireReply } from '../../../test/gateway/upstream.ts';
import { WAYS_TO_SPEND, type Way } from '../../../test/gateway/ways-to-spend.ts';
import { APIS } from '../wire/apis.ts';

const OTHER_KEY = keyValueOf('another');
const LIMITS: Readonly<Record<string, string>> = {
  chat: 'max_tokens',
  messages: 'max_tokens',
  responses: 'max_output_tokens',
};
const ways = WAYS_TO_SPEND.filter(({ path }) => !path.startsWith('/v1/'));

function open({ provider, path, body }: Way, script: Script, limit = '1') {
  const keys = {
    [KEY]: keyRecord({ limit }),
    [OTHER_KEY]: keyRecord({ limit, object: { namespace: 'default', name: 'another' } }),
  };
  const world = stage({ snapshot: snapshotOf([entry('gpt', { provider })], { retries: 0 }), keys, script });
  const send = (sent: object, headers: Record<string, string> = { authorization: `Bearer ${KEY}` }) =>
    world.app.request(path, { method: 'POST', headers, body: JSON.stringify(sent) });
  return { ...world, send, ask: (more: object = {}) => send({ ...body, ...more }) };
}

const apiOf = ({ path }: Way) => APIS.find((api) => api.path === path);
const limitOf = (way: Way) => LIMITS[apiOf(way)?.name ?? ''] ?? '';

describe.each(ways.filter((way) => limitOf(way) !== ''))('a limit, behind $provider, on $path,', (way) => {
  test.each([0, -1, 1.5, 1e300, '5', true, [], {}])(
    'of %j is refused before a provider is called or a charge is made',
    async (limit) => {
      const { ask, ledger, fake } = open(way, () => ({ body: way.whole }));
      const response = await ask({ [limitOf(way)]: limit });
      expect([response.status, ledger.asked.length, fake.requests.length]).toEqual([400, 0, 0]);
    },
  );

  test('that is huge is lowered to what the budget covers', async () => {
    const { ask, ledger } = open(way, () => ({ body: way.whole }));
    const response = await ask({ [limitOf(way)]: Number.MAX_SAFE_INTEGER });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get('x-gateway-clamped-to'))).toBeLessThanOrEqual(500_000);
    expect(ledger.liveReservations()).toBe(0);
  });
});

describe.each(ways)('behind $provider, on $path,', (way) => {
  test('a prompt of a million tokens is refused by a small budget, and reserved in full by a large one', async () => {
    const long = 'word '.repeat(800_000);
    const prompt = 'messages' in way.body ? { messages: [{ role: 'user', content: long }] } : { input: long };
    const poor = open(way, () => ({ body: way.whole }));
    expect([(await poor.ask(prompt)).status, poor.fake.requests.length, poor.ledger.liveReservations()]).toEqual([
      429, 0, 0,
    ]);
    const rich = open(way, () => ({ body: way.whole }), '100');
    expect((await rich.ask(prompt)).status).toBe(200);
    expect(rich.ledger.asked[0]?.amount).toBeGreaterThan(4_000_000n * 1000n);
  });

  test('a body of another API is refused, or read as one of this API, and no reservation is left', async () => {
    for (const other of ways) {
      const { send, ledger } = open(way, () => ({ body: way.whole }));
      const { status } = await send(other.body);
      expect([200, 400]).toContain(status);
      expect(ledger.liveReservations()).toBe(0);
    }
  });

  test('with two keys in two headers charges the bearer', async () => {
    const { send, lines } = open(way, () => ({ body: way.whole }));
    await send(way.body, { authorization: `Bearer ${KEY}`, 'x-api-key': OTHER_KEY });
    await send(way.body, { authorization: `Bearer ${OTHER_KEY}`, 'x-api-key': KEY });
    expect(lines.map(({ fields }) => JSON.stringify(fields.key))).toEqual([
      expect.stringContaining('billing'),
      expect.stringContaining('another'),
    ]);
  });
});

describe.each(ways.filter((way) => way.stream !== undefined))('a stream, behind $provider, on $path,', (way) => {
  const { whole = [], begun = [], cost = 0n } = way.stream ?? {};
  const settledOf = async (body: WireReply, more: object = {}) => {
    const world = open(way, () => body);
    const text = await textOf(await world.ask({ stream: true, ...more }));
    expect(world.ledger.liveReservations()).toBe(0);
    return { ...world, text, settled: world.ledger.settled };
  };
  const plays = (events: ReadonlyArray<string>) => ({ headers: SSE, body: [...events] });

  test('that sends its usage twice is charged once', async () => {
    const twice = whole.flatMap((one) => (/"(completion|output)_tokens":3/.test(one) ? [one, one] : [one]));
    expect((await settledOf(plays(twice))).settled).toMatchObject([{ cost, estimated: false }]);
  });

  test('that sends none is estimated, and never free', async () => {
    const without = whole.map((one) => one.replace(/"usage":\{[^}]*\}/, '"usage":null'));
    const { settled } = await settledOf(plays(without));
    expect(settled).toMatchObject([{ estimated: true, tokens: { output: 2 } }]);
    expect(settled[0]?.cost).toBeGreaterThan(0n);
  });

  test('that counts more than its limit is charged its count, because the provider bills that', async () => {
    const lying = whole.map((one) => one.replace(/"(completion|output)_tokens":3/, '"$1_tokens":90000'));
    const { settled } = await settledOf(plays(lying));
    expect(settled).toMatchObject([{ cost: 10n * 1000n + 90_000n * 2000n, estimated: false }]);
  });

  test('that never ends is cut at its reservation, and its provider is stopped', async () => {
    async function* endless() {
      for (const one of begun) yield new TextEncoder().encode(one);
      for (;;) yield new TextEncoder().encode(begun.at(-1) ?? '');
    }
    const { settled, ledger, fake } = await settledOf({ headers: SSE, body: endless() }, { [limitOf(way)]: 50 });
    expect(settled[0]?.cost).toBeLessThanOrEqual(ledger.asked[0]?.amount ?? 0n);
    expect(fake.requests[0]?.signal.aborted).toBe(true);
  });
});
