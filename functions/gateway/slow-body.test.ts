import { describe, expect, test } from 'vitest';
import type { KeyRecord } from '#core/ports/policy.ts';
import { KEY, keyRecord, scope } from '../../test/gateway/instance.ts';
import { stage } from '../../test/gateway/stage.ts';
import { settleDown } from '../../test/gateway/time.ts';
import { MESSAGES } from '../../test/gateway/upstream.ts';

const CHAT = new TextEncoder().encode(JSON.stringify({ model: 'gpt', messages: MESSAGES }));

/** A request whose client sends the last byte of its body when it likes. */
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

describe('a client that takes minutes to send its body', () => {
  test.each<[string, KeyRecord | undefined, number, string]>([
    ['a key that is deleted or rotated away meanwhile', undefined, 401, 'invalid_api_key'],
    ['a key that is blocked meanwhile', keyRecord({ blocked: true }), 403, 'key_blocked'],
    ['a key whose team is blocked meanwhile', keyRecord({}, [scope('team', { blocked: true })]), 403, 'key_blocked'],
    ['a key that loses the model meanwhile', keyRecord({ models: ['other'] }), 403, 'model_access_denied'],
    ['a key whose budget is lowered meanwhile', keyRecord({ limit: '0.0000001' }), 429, 'budget_exceeded'],
  ])('has no more than it may have when the body is there: %s', async (_, later, status, code) => {
    const { app, keys, clock, fake, ledger } = stage();
    const finish = beginSlowly(app);
    await settleDown();
    if (later === undefined) delete keys[KEY];
    else keys[KEY] = later;
    await clock.pass(200_000);
    const response = await finish();
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect([fake.requests.length, ledger.settled.length, ledger.held()]).toEqual([0, 0, 0]);
  });

  test('has a budget that is raised meanwhile, and pays from the team that its key joined', async () => {
    const { app, keys, clock, ledger } = stage({ keys: { [KEY]: keyRecord({ limit: '0.0000001' }) } });
    const finish = beginSlowly(app);
    await settleDown();
    keys[KEY] = keyRecord({}, [scope('team')]);
    await clock.pass(200_000);
    expect((await finish()).status).toBe(200);
    expect(ledger.asked.at(-1)?.scopes.map(({ kind }) => kind)).toEqual(['key', 'team']);
  });
});

describe('bodies that are sent at the same time', () => {
  const MEBIBYTE = new Uint8Array(1024 * 1024).fill(0x20);
  /** Sends so many MiB of a body, and no more until it is told to break it off. */
  const sending = (app: ReturnType<typeof stage>['app'], mebibytes: number) => {
    let stop = () => {};
    let left = mebibytes;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        left -= 1;
        if (left >= 0) controller.enqueue(MEBIBYTE);
        stop = () => controller.error(new Error('the client left'));
      },
    });
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const answer = app.request('/chat/completions', { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    return { answer, stop: () => stop() };
  };

  test('are no more than the process can keep: a large one is refused, a small one is read', async () => {
    const { app, chat } = stage();
    const large = Array.from({ length: 4 }, () => sending(app, 32));
    await settleDown();
    const refused = await sending(app, 1).answer;
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await refused.json()).toMatchObject({ error: { code: 'overloaded' } });
    expect((await chat({ model: 'gpt', messages: MESSAGES })).status).toBe(200);
    for (const { stop } of large) stop();
    expect((await Promise.all(large.map(({ answer }) => answer))).map(({ status }) => status)).toEqual(
      Array(4).fill(400),
    );
    const next = sending(app, 1);
    await settleDown();
    next.stop();
    expect((await next.answer).status).toBe(400);
  });

  test('are not even read for a key that is not known', async () => {
    const { app, fake } = stage({ keys: {} });
    const all = Array.from({ length: 6 }, () => sending(app, 32).answer);
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual(Array(6).fill(401));
    expect(fake.requests).toEqual([]);
  });
});
