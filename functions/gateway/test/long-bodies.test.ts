import { describe, expect, test } from 'vitest';
import type { TurnOwner } from '#core/ports/http-exchange.ts';
import { exchangeOf } from '../../../test/gateway/exchange.ts';
import { KEY, keyRecord, keyValueOf } from '../../../test/gateway/instance.ts';
import { codeOf, stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { createGateway } from '../app.ts';

const encoder = new TextEncoder();

/** Many of these, in a body that a model answers. */
const holding = (many: string) => encoder.encode(`{"model":"gpt","messages":[{"role":"user","content":"hi"}]${many}}`);
const tools = (count: number) => holding(`,"tools":[${'{},'.repeat(count)}{}]`);

function open(more: object = {}) {
  const { app, fake, ledger, deps } = stage({ keys: { [KEY]: keyRecord({ limit: '1000' }) }, deps: more });
  const post = async (body: Uint8Array) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const response = await app.request('/chat/completions', { method: 'POST', headers, body });
    return response.ok ? [200] : await codeOf(response);
  };
  return { app, post, fake, ledger, deps };
}

describe('a body', () => {
  test('of more than a thousand members is refused, whatever their names', async () => {
    const { post, fake, ledger } = open();
    const distinct = Array.from({ length: 2_000 }, (_, at) => `,"n${at}":1`).join('');
    for (const many of [',"n":1'.repeat(150_000), ',"":1'.repeat(2_000), ',"\\u006e":1'.repeat(2_000), distinct]) {
      expect(await post(holding(many))).toEqual([400, 'invalid_request']);
    }
    expect([fake.requests.length, ledger.asked.length]).toEqual([0, 0]);
    expect(await post(holding(`,"metadata":{"a":"1"${',"n":1'.repeat(2_000)}}`))).toEqual([200]);
  });

  test('of very many parts counts as large: a key may send some, and then few a second', async () => {
    const { post } = open();
    const seen = new Set<unknown>();
    for (let time = 0; time < 8; time += 1) seen.add((await post(tools(200_000)))[1]);
    expect([...seen]).toContain('overloaded');
    expect(await post(tools(10))).toEqual([200]);
  });

  test.each([
    ['a long text', holding(`,"user":"${'x'.repeat(100_000)}"`), 1],
    ['a text of 20 KB', holding(`,"user":"${'x'.repeat(20_000)}"`), 1],
    ['many parts', tools(5_000), 1],
    ['a thousand parts in 3 KB', tools(1_000), 1],
    // Its values are counted, it is parsed, and its letters are read.
    ['a text of 2 MiB', holding(`,"user":"${'x'.repeat(2 ** 21)}"`), 3],
    ['a list of three thousand numbers', holding(`,"x":[${'1,'.repeat(3_000)}1]`), 1],
    ['neither', holding(`,"user":"${'x'.repeat(8_000)}","tools":[${'{},'.repeat(100)}{}]`), 0],
  ])('of %s waits for the turn of its key', async (_, body, turns) => {
    const { deps } = open();
    const asked: TurnOwner[] = [];
    const gateway = createGateway(deps);
    await gateway(exchangeOf('/chat/completions', body, { turn: async (of) => void asked.push(of) }));
    expect(asked).toHaveLength(turns);
    for (const of of asked) expect(of).toEqual({ namespace: expect.any(String), key: expect.any(String) });
  });

  test('whose client has left before its turn is not read', async () => {
    const { deps, fake, ledger } = open();
    const gateway = createGateway(deps);
    let hasLeft = false;
    const turn = async () => {
      hasLeft = true;
    };
    await gateway(
      exchangeOf('/chat/completions', holding(`,"user":"${'x'.repeat(100_000)}"`), { turn, hasLeft: () => hasLeft }),
    );
    expect([fake.requests.length, ledger.asked.length]).toEqual([0, 0]);
  });
});

test('concurrent translated bodies of one key leave memory to other keys', async () => {
  const other = keyValueOf('other');
  const keys = { [KEY]: keyRecord({ limit: '1000' }), [other]: keyRecord({ scopeId: 'other', limit: '1000' }) };
  const script = () => new Promise<never>(() => {});
  // Room for 16 MiB.
  const { app, fake } = stage({ keys, script, deps: { memory: { limit: 64 * 2 ** 20, own: 0 } } });
  const post = (key: string, bytes: number) => {
    const messages = [{ role: 'user', content: 'x'.repeat(bytes) }];
    const body = encoder.encode(JSON.stringify({ model: 'gpt', max_tokens: 5, messages }));
    const headers = { 'x-api-key': key, 'content-length': `${body.length}` };
    return app.request('/messages', { method: 'POST', headers, body });
  };
  for (let request = 0; request < 10; request += 1) void post(KEY, 1_400_000);
  await settleDown();
  for (let request = 0; request < 100; request += 1) void post(KEY, 50_000);
  await settleDown();
  const called = fake.requests.length;
  void post(other, 250_000);
  await settleDown();
  expect(fake.requests.length).toBe(called + 1);
});

describe('a body for a provider with the other dialect', () => {
  const blocks = (count: number) =>
    encoder.encode(
      `{"model":"gpt","max_tokens":5,"messages":[{"role":"user","content":[${'{"type":"a_result"},'.repeat(count)}{}]}]}`,
    );

  test.each([
    ['that is long waits for a turn once more before it is translated', 1_000, 2],
    ['that is short waits for none', 10, 0],
  ])('%s', async (_, count, turns) => {
    const { deps } = open();
    let asked = 0;
    const turn = async () => {
      asked += 1;
    };
    await createGateway(deps)(exchangeOf('/messages', blocks(count), { turn }));
    expect(asked).toBe(turns);
  });

  test('is not translated without memory for the translation', async () => {
    const { app } = open({ memory: { limit: 64 * 2 ** 20, own: 0 } });
    const statusOf = async (count: number) =>
      (await app.request('/messages', { method: 'POST', headers: { 'x-api-key': KEY }, body: blocks(count) })).status;
    expect(await statusOf(1_000)).toBe(400);
    expect(await statusOf(100_000)).toBe(503);
  });
});
