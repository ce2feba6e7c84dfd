// Attempts that the provider took and that broke: charged, and another entry is tried if the budget covers both
// (LEDGER 10).
import { describe, expect, test } from 'vitest';
import { UpstreamError } from '#core/ports/upstream.ts';
import { entry, KEY, keyRecord, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import {
  breaksAfter,
  completion,
  DONE,
  MESSAGES,
  type Script,
  SSE,
  sentText,
  streamed,
  USAGE_CHUNK,
  type WireReply,
} from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, max_tokens: 5 };
const ESTIMATE = Math.ceil(JSON.stringify(CHAT).length / 3);
/** What an attempt without an answer is charged: the estimate of the prompt. */
const PROMPT = BigInt(ESTIMATE) * 1_000n;
/** What `REPLY` costs. */
const ANSWER = 20_000n;
const REPLY: WireReply = { body: completion('hello') };
const HTML = { 'content-type': 'text/html' };
const CUT = completion('hello').slice(0, 50);

/** How an attempt breaks, the status for its client if no other entry is left, and the output that is charged. */
const BREAKS: ReadonlyArray<readonly [string, Script, number, number]> = [
  ['falls silent', () => new Promise(() => {}), 504, 0],
  ['breaks off before its head', () => Promise.reject(new UpstreamError('broken', 'reset')), 502, 0],
  ['breaks off behind its head', () => ({ body: breaksAfter() }), 502, 0],
  ['breaks off in its reply', () => ({ body: breaksAfter('{"id":') }), 502, 2],
  ['ends in the middle of its reply', () => ({ body: CUT }), 502, 5],
  ['ends without a reply', () => ({ body: '' }), 502, 0],
  ['is reported as 408', () => ({ status: 408 }), 504, 0],
  ['is reported as 502', () => ({ status: 502, headers: HTML, body: '<html>Bad Gateway</html>' }), 502, 0],
  ['is reported as 504', () => ({ status: 504, headers: HTML, body: '<html>Timeout</html>' }), 504, 0],
  ['is reported as 520', () => ({ status: 520, body: 'error code: 520' }), 502, 0],
  ['is reported as 524', () => ({ status: 524, body: '{"message":"a timeout occurred"}' }), 504, 0],
  ['is reported as 504 in a body that breaks off', () => ({ status: 504, body: breaksAfter('{"error":') }), 504, 0],
];

interface Options {
  readonly names?: ReadonlyArray<string>;
  readonly keys?: ReturnType<typeof keyRecord>;
  readonly routing?: object;
  readonly price?: object;
}

/** Entries of one model, the first one first; each may take 300 ms to answer. */
function open(script: Script, { names = ['a', 'b'], keys = keyRecord(), routing = {}, price = {} }: Options = {}) {
  const entries = names.map((identifier, priority) => {
    return entry('gpt', { identifier, model: identifier, priority, timeout: 300, ...(priority > 0 ? price : {}) });
  });
  const snapshot = snapshotOf(entries, { strategy: 'Priority', ...routing });
  const world = stage({ snapshot, script, keys: { [KEY]: keys } });
  /** The reply, after this number of attempts has timed out. */
  const ask = async (body: object, attempts = 1): Promise<Response> => {
    const response = world.chat(body);
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      await settleDown();
      await world.clock.pass(300);
    }
    return response;
  };
  const called = () => world.fake.requests.map((request) => JSON.parse(sentText(request)).model);
  return { ...world, ask, called };
}

/** The first attempt ends in this way; the others get a whole reply. */
const once =
  (script: Script, then: Script = () => REPLY): Script =>
  (request, call) =>
    (call === 1 ? script : then)(request, call);

const chargeOf = (output: number): bigint => PROMPT + BigInt(output) * 2_000n;

describe.each(BREAKS)('an attempt that the provider took and that %s', (_, script, status, output) => {
  test('is charged, the reservation grows by that charge, and another entry answers', async () => {
    const { ask, called, ledger } = open(once(script));
    expect((await ask(CHAT)).status).toBe(200);
    expect([called(), ledger.grown, ledger.liveReservations()]).toEqual([['a', 'b'], [chargeOf(output)], 0]);
    expect(ledger.settled).toMatchObject([
      { cost: chargeOf(output) + ANSWER, identifier: 'b', estimated: true, tokens: { input: ESTIMATE + 10 } },
    ]);
  });

  test('is not repeated at the same entry', async () => {
    const { ask, called, ledger, lines } = open(script, { names: ['a'] });
    expect((await ask(CHAT)).status).toBe(status);
    expect([called(), ledger.grown, ledger.released]).toEqual([['a'], [], []]);
    expect(ledger.settled).toMatchObject([
      { cost: chargeOf(output), estimated: true, tokens: { input: ESTIMATE, output } },
    ]);
    expect(lines.at(-1)?.fields).toMatchObject({ cost: expect.any(String), code: expect.stringContaining('upstream') });
  });
});

describe.each(BREAKS.filter(([name]) => !/reply$/.test(name)))('a stream whose first attempt %s', (_, script) => {
  test('comes from another entry', async () => {
    const { ask, called, ledger } = open(once(script, () => ({ headers: SSE, body: streamed(['x']) })));
    expect(await textOf(await ask({ ...CHAT, stream: true }))).toContain(DONE);
    expect(called()).toEqual(['a', 'b']);
    expect(ledger.grown).toHaveLength(1);
    expect(ledger.settled).toHaveLength(1);
    expect(ledger.settled[0]?.cost).toBe((ledger.grown[0] ?? 0n) + 10n * 1_000n + 3n * 2_000n);
  });
});

describe('after a broken attempt', () => {
  const breaks: Script = () => ({ body: breaksAfter() });

  test('the next one waits until the reservation has grown', async () => {
    const { chat, fake, ledger } = open(once(breaks));
    const { grow } = ledger;
    const gate = Promise.withResolvers<void>();
    ledger.grow = async (...of) => gate.promise.then(() => grow(...of));
    const response = chat(CHAT);
    await settleDown();
    expect(fake.requests).toHaveLength(1);
    gate.resolve();
    expect((await response).status).toBe(200);
  });

  test('every further attempt is charged and covered too, within the retries of the instance', async () => {
    const { ask, called, ledger } = open(breaks, { names: ['a', 'b', 'c', 'd'], routing: { retries: 2 } });
    expect((await ask(CHAT)).status).toBe(502);
    expect([called(), ledger.grown]).toEqual([
      ['a', 'b', 'c'],
      [PROMPT, PROMPT],
    ]);
    expect(ledger.settled).toMatchObject([{ cost: 3n * PROMPT, tokens: { input: 3 * ESTIMATE } }]);
  });

  test('no other attempt begins after the total time of the request', async () => {
    const timeouts = { connect: 100, firstByte: 1000, idle: 1000, total: 450 };
    const { ask, called, ledger } = open(() => new Promise(() => {}), {
      names: ['a', 'b', 'c'],
      routing: { timeouts },
    });
    expect((await ask(CHAT, 2)).status).toBe(504);
    expect([called(), ledger.grown]).toEqual([['a', 'b'], [PROMPT]]);
    expect(ledger.settled).toMatchObject([{ cost: 2n * PROMPT }]);
  });

  test('the whole answer of the next attempt is within the reservation, and its output is not shorter', async () => {
    const { ask, fake, ledger } = open(once(breaks), { keys: keyRecord({ limit: '0.0003' }) });
    const amount = { before: 0n, after: 0n };
    const { reserve } = ledger;
    ledger.reserve = async (request) => {
      const held = await reserve(request);
      if (held.ok) amount.before = held.value.amount;
      return held;
    };
    expect((await ask(CHAT)).status).toBe(200);
    expect(fake.sent(1).max_tokens).toBe(5);
    expect(ledger.settled[0]?.cost).toBeLessThanOrEqual(amount.before + PROMPT);
  });

  // The reservation is 82 bytes of prompt and five tokens.
  test.each<[string, ReturnType<typeof keyRecord>]>([
    ['of the key', keyRecord({ limit: '0.0001' })],
    [
      'of one of its scopes',
      keyRecord({}, [scope('team', { budget: { limit: '100000', duration: '30d', alignment: 'Rolling' } })]),
    ],
  ])(
    'no other is tried if the budget %s does not cover both: the client gets the error of the attempt',
    async (_, keys) => {
      const { ask, called, ledger } = open(once(breaks), { keys });
      expect((await ask(CHAT)).status).toBe(502);
      expect([called(), ledger.grown]).toEqual([['a'], []]);
      expect(ledger.settled).toMatchObject([{ cost: PROMPT }]);
    },
  );

  test('a cheaper attempt is tried if the reservation covers both', async () => {
    const price = { price: { input: '0.1', output: '0.2' } };
    const { ask, called, ledger } = open(once(breaks), { keys: keyRecord({ limit: '0.0001' }), price });
    expect((await ask(CHAT)).status).toBe(200);
    expect([called(), ledger.grown]).toEqual([['a', 'b'], []]);
    expect(ledger.settled).toMatchObject([{ cost: PROMPT + 10n * 100n + 5n * 200n, identifier: 'b', estimated: true }]);
  });

  test('a stream is cut at the rest of the reservation', async () => {
    const price = { price: { input: '0.1', output: '2' } };
    const words = Array.from({ length: 90 }, (_, index) => `w${index} `);
    const whole = streamed(words).filter((piece) => piece !== USAGE_CHUNK);
    const { ask, ledger, lines } = open(
      once(breaks, () => ({ headers: SSE, body: whole })),
      { keys: keyRecord({ limit: '0.00015' }), price },
    );
    await textOf(await ask({ ...CHAT, max_tokens: 30, stream: true }));
    expect(lines.at(-1)?.fields).toMatchObject({ end: 'cut' });
    expect(ledger.settled[0]?.cost).toBeLessThanOrEqual(ledger.asked[0]?.amount ?? 0n);
  });

  test('a model without a price needs no growth', async () => {
    const free = { price: { input: '0', output: '0' } };
    const entries = ['a', 'b'].map((identifier) => entry('gpt', { identifier, ...free }));
    const { chat, ledger } = stage({ snapshot: snapshotOf(entries), script: once(breaks) });
    expect((await chat(CHAT)).status).toBe(200);
    expect([ledger.grown, ledger.settled[0]?.cost]).toEqual([[], 0n]);
  });
});

test('an attempt that the provider counts and ends by an error is charged the count, and not repeated at the same entry', async () => {
  const usage = { prompt_tokens: 7, completion_tokens: 0 };
  const event = `data: ${JSON.stringify({ error: { message: 'overloaded', code: 500 }, usage })}\n\n`;
  const { ask, called, ledger } = open((_, call) => ({ headers: SSE, body: call === 1 ? [event] : streamed(['x']) }), {
    names: ['a'],
  });
  const response = await ask({ ...CHAT, stream: true });
  expect([response.status, called()]).toEqual([502, ['a']]);
  expect(ledger.settled).toMatchObject([{ cost: 7_000n, tokens: { input: 7, output: 0 } }]);
});

describe('an attempt that the provider refused', () => {
  const error = '{"error":{"message":"no","code":"nope"}}';

  test.each([408, 502, 504, 520, 524])('with its own error (%d) costs nothing', async (status) => {
    const { ask, called, ledger } = open(once(() => ({ status, body: error })));
    expect((await ask(CHAT)).status).toBe(200);
    expect([called(), ledger.grown]).toEqual([['a', 'b'], []]);
    expect(ledger.settled).toMatchObject([{ cost: ANSWER, estimated: false }]);
  });

  test.each([
    ['500 without words', { status: 500 }],
    ['a status that says that it was not reached', { status: 522, body: 'error code: 522' }],
    ['a page in place of a reply', { headers: HTML, body: '<html>Log in</html>' }],
    ['an error in place of a reply', { body: error }],
    ['JSON that is no reply', { body: '{"status":"ok"}' }],
    ['401 in a body that breaks off', { status: 401, body: breaksAfter('{"err') }],
  ])('by %s costs nothing', async (_, reply) => {
    const { ask, ledger } = open(once(() => reply));
    expect((await ask(CHAT)).status).toBe(200);
    expect(ledger.grown).toEqual([]);
    expect(ledger.settled).toMatchObject([{ cost: ANSWER, estimated: false }]);
  });

  test('by an error in its stream costs nothing, whatever the status of that error', async () => {
    const event = 'data: {"error":{"message":"no","code":504}}\n\n';
    const { ask, ledger } = open(
      once(
        () => ({ headers: SSE, body: [event] }),
        () => ({ headers: SSE, body: streamed(['x']) }),
      ),
    );
    expect(await textOf(await ask({ ...CHAT, stream: true }))).toContain(DONE);
    expect([ledger.grown, ledger.settled[0]?.cost]).toEqual([[], 16_000n]);
  });
});
