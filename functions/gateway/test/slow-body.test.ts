import { describe, expect, test } from 'vitest';
import type { KeyRecord } from '#core/ports/policy.ts';
import { KEY, keyRecord, keyValueOf, scope } from '../../../test/gateway/instance.ts';
import { codeOf, stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { completion, MESSAGES, type WireReply } from '../../../test/gateway/upstream.ts';

const CHAT = new TextEncoder().encode(JSON.stringify({ model: 'gpt', messages: MESSAGES }));

/** A request whose client sends the last byte of its body at a time of its choice. */
function beginSlowly(app: ReturnType<typeof stage>['app']) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: readable, duplex: 'half' };
  const answer = app.request('/chat/completions', init as RequestInit);
  void writer.write(CHAT.subarray(0, -1));
  return async () => {
    void writer.write(CHAT.subarray(-1)).then(() => writer.close());
    return await answer;
  };
}

describe('a client that takes half a minute to send its body', () => {
  test.each<[string, KeyRecord | undefined, number, string]>([
    ['a key that is deleted or rotated away meanwhile', undefined, 401, 'invalid_api_key'],
    ['a key that is blocked meanwhile', keyRecord({ blocked: true }), 403, 'key_blocked'],
    ['a key whose team is blocked meanwhile', keyRecord({}, [scope('team', { blocked: true })]), 403, 'key_blocked'],
    ['a key that loses the model meanwhile', keyRecord({ models: ['other'] }), 403, 'model_access_denied'],
    ['a key whose budget is lowered meanwhile', keyRecord({ limit: '0.0000001' }), 429, 'budget_exceeded'],
  ])('has the rights of the moment when the body has arrived: %s', async (_, later, status, code) => {
    const { app, keys, clock, fake, ledger } = stage();
    const finish = beginSlowly(app);
    await settleDown();
    if (later === undefined) delete keys[KEY];
    else keys[KEY] = later;
    await clock.pass(29_000);
    const response = await finish();
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect([fake.requests.length, ledger.settled.length, ledger.liveReservations()]).toEqual([0, 0, 0]);
  });

  test('has a budget that is raised meanwhile, and is charged to the team that its key joined', async () => {
    const { app, keys, clock, ledger } = stage({ keys: { [KEY]: keyRecord({ limit: '0.0000001' }) } });
    const finish = beginSlowly(app);
    await settleDown();
    keys[KEY] = keyRecord({}, [scope('team')]);
    await clock.pass(29_000);
    expect((await finish()).status).toBe(200);
    expect(ledger.asked.at(-1)?.scopes.map(({ kind }) => kind)).toEqual(['key', 'team']);
  });
});

const MIB = 1024 * 1024;
const PIECE = new Uint8Array(MIB / 4).fill(0x20);
/** Room for 16 MiB of bodies, of 2 MiB each; 128 requests. */
const MEMORY = { limit: 64 * MIB, own: 0 };

/** Sends a part of a body, and stays open until it is broken off. */
function sendPartly(
  app: ReturnType<typeof stage>['app'],
  { key = KEY, mebibytes = 2, announced }: { key?: string; mebibytes?: number; announced?: number },
) {
  let stop = () => {};
  let left = 4 * mebibytes;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      left -= 1;
      if (left >= 0) controller.enqueue(PIECE);
      stop = () => controller.error(new Error('the client left'));
    },
  });
  const length = announced === undefined ? {} : { 'content-length': String(announced) };
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...length };
  const answer = app.request('/chat/completions', { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
  return { answer, stop: () => stop() };
}

describe('bodies that are sent at the same time', () => {
  const OTHER = keyValueOf('other');
  const open = () =>
    stage({
      keys: { [KEY]: keyRecord(), [OTHER]: keyRecord({ scopeId: 'other-scope' }) },
      deps: { memory: MEMORY },
    });

  test.each([
    ['announced', 2 * MIB],
    ['not announced', undefined],
  ])(
    'are no more than the process can keep: a large one is refused, a small one is read (%s)',
    async (_, announced) => {
      const { app, chat } = open();
      const large = Array.from({ length: 5 }, () => sendPartly(app, announced === undefined ? {} : { announced }));
      await settleDown();
      const refused = await sendPartly(app, { announced: MIB }).answer;
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
      expect(await refused.json()).toMatchObject({ error: { code: 'overloaded' } });
      expect((await chat({ model: 'gpt', messages: MESSAGES })).status).toBe(200);
      for (const { stop } of large) stop();
      const statuses = (await Promise.all(large.map(({ answer }) => answer))).map(({ status }) => status);
      expect(statuses).toEqual(Array(5).fill(400));
      const next = sendPartly(app, { key: OTHER });
      await settleDown();
      next.stop();
      expect((await next.answer).status).toBe(400);
    },
  );

  test('get their memory when they are announced, so that together they find enough', async () => {
    const { app } = open();
    // Twice as many as there is room for, none of which has sent anything.
    const all = Array.from({ length: 16 }, (_, at) =>
      sendPartly(app, { key: at % 2 === 0 ? KEY : OTHER, mebibytes: 0, announced: 2 * MIB }),
    );
    await settleDown();
    for (const { stop } of all) stop();
    const statuses = (await Promise.all(all.map(({ answer }) => answer))).map(({ status }) => status);
    expect(statuses.filter((status) => status === 400).length).toBeGreaterThanOrEqual(4);
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThanOrEqual(4);
  });

  test('of one key leave memory to others', async () => {
    const { app } = open();
    // The look-up of a second key would begin 2 ms later.
    for (const key of [KEY, OTHER]) {
      const first = sendPartly(app, { key, announced: MIB });
      await settleDown();
      first.stop();
      await first.answer;
    }
    const greedy = Array.from({ length: 10 }, () => sendPartly(app, { announced: MIB }));
    const other = sendPartly(app, { key: OTHER, announced: 2 * MIB });
    await settleDown();
    other.stop();
    expect((await other.answer).status).toBe(400);
    for (const { stop } of greedy) stop();
    await Promise.all(greedy.map(({ answer }) => answer));
  });

  test('are not read for an unknown key', async () => {
    const { app, fake } = stage({ keys: {}, deps: { memory: MEMORY } });
    const all = Array.from({ length: 6 }, () => sendPartly(app, {}).answer);
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual(Array(6).fill(401));
    expect(fake.requests).toEqual([]);
  });

  test('that arrive too slowly are refused, and give their memory to others', async () => {
    const { app, clock } = open();
    const slow = Array.from({ length: 5 }, () => sendPartly(app, { mebibytes: 1, announced: 2 * MIB }));
    await settleDown();
    expect((await sendPartly(app, { announced: 2 * MIB }).answer).status).toBe(503);
    // A body of a mebibyte may take eight seconds longer than an empty one.
    await clock.pass(30_000);
    await clock.pass(7_999);
    expect((await sendPartly(app, { announced: 2 * MIB }).answer).status).toBe(503);
    await clock.pass(1);
    for (const { answer } of slow) {
      const response = await answer;
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { error: { message: expect.stringContaining('too slowly') } },
      ]);
    }
    const next = sendPartly(app, { announced: 2 * MIB });
    await settleDown();
    next.stop();
    expect((await next.answer).status).toBe(400);
  });

  test('are refused beyond the requests that a process can serve, until one of them ends', async () => {
    const replies: Array<() => void> = [];
    const script = () => new Promise<WireReply>((resolve) => replies.push(() => resolve({ body: completion('x') })));
    const names = Array.from({ length: 128 }, (_, at) => keyValueOf(`of ${at}`));
    const recordOf = (key: string) => keyRecord({ limit: '1000', scopeId: key, object: { namespace: key, name: 'k' } });
    const keys = Object.fromEntries([...names, KEY].map((key) => [key, recordOf(key)]));
    const { app, clock } = stage({ keys, script, deps: { memory: MEMORY } });
    const ask = (key = KEY) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      return app.request('/chat/completions', { method: 'POST', headers, body: CHAT });
    };
    const served = names.map(ask);
    await settleDown();
    // The look-up of the other keys begins 2 ms after that of the first.
    await clock.pass(2);
    await settleDown();
    expect(replies).toHaveLength(128);
    expect(await codeOf(await ask())).toEqual([503, 'overloaded']);
    const counted = await app.request('/messages/count_tokens', {
      method: 'POST',
      headers: { 'x-api-key': KEY },
      body: '{}',
    });
    expect(counted.status).toBe(503);
    replies.pop()?.();
    expect((await Promise.race(served)).status).toBe(200);
    await settleDown();
    void ask();
    await settleDown();
    expect(replies).toHaveLength(128);
  });

  test('of one key without any bytes leave requests to others', async () => {
    const { app, chat, keys } = open();
    keys[KEY] = keyRecord({ limit: '0' });
    const silent = Array.from({ length: 128 }, () => sendPartly(app, { mebibytes: 0, announced: 100 }));
    await settleDown();
    expect((await chat({ model: 'gpt', messages: MESSAGES }, { key: OTHER })).status).toBe(200);
    for (const { stop } of silent) stop();
    const statuses = await Promise.all(silent.map(async ({ answer }) => (await answer).status));
    expect(Object.groupBy(statuses, String)).toMatchObject({ 400: { length: 96 }, 503: { length: 32 } });
  });

  test('of one key at its maximum leave memory for its replies, which are charged', async () => {
    const replies: Array<() => void> = [];
    const script = () => new Promise<WireReply>((resolve) => replies.push(() => resolve({ body: completion('x') })));
    const { chat } = stage({ keys: { [KEY]: keyRecord({ limit: '1000' }) }, script, deps: { memory: MEMORY } });
    const ask = () => chat({ model: 'gpt', messages: [{ role: 'user', content: 'x'.repeat(60 * 1024) }] });
    const all = Array.from({ length: 90 }, ask);
    await settleDown();
    expect(await codeOf(await ask())).toEqual([503, 'overloaded']);
    expect(replies.length).toBeLessThan(90);
    const completed = replies.length;
    for (const reply of replies) reply();
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(completed);
  });
});
