import { describe, expect, test } from 'vitest';
import { errorBody } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { addressOf, MESSAGES, type Script, sentText } from '../../../test/gateway/upstream.ts';

const COUNT = { model: 'claude', messages: MESSAGES };

function open(script: Script, record = keyRecord()) {
  const snapshot = snapshotOf([entry('claude', { provider: 'anthropic' })]);
  const world = stage({ snapshot, script, keys: { [KEY]: record } });
  const count = (body: unknown = COUNT) =>
    world.app.request('/v1/messages/count_tokens?beta=true', {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'anthropic-beta': 'b' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return { ...world, count };
}

describe('counting tokens', () => {
  test('is passed to the provider and back, byte for byte', async () => {
    const { count, fake, lines } = open(() => ({ body: '{"input_tokens": 42, "more": 1}' }));
    const body = '{"model":"claude","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a"}]}';
    const response = await count(body);
    expect(await response.text()).toBe('{"input_tokens": 42, "more": 1}');
    expect(response.headers.get('x-gateway-estimated')).toBeNull();
    expect(addressOf(fake.requests[0])).toBe('https://api.anthropic.com/v1/messages/count_tokens?beta=true');
    expect(sentText(fake.requests[0])).toBe(body.replace('"claude"', '"real-claude"'));
    expect(lines[0]?.fields).toMatchObject({ route: 'messages/count_tokens', status: 200, attempts: 1 });
  });

  test('is free, thirty times at the same time, also for a key whose budget is spent and whose rate is one', async () => {
    const spent = keyRecord({ limit: '0', rates: { requests: 1, parallel: 1 } } as Parameters<typeof keyRecord>[0]);
    const { count, ledger } = open(() => ({ body: '{"input_tokens":42}' }), spent);
    const replies = await Promise.all([...Array(30)].map(() => count()));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect([ledger.asked.length, ledger.settled.length]).toEqual([0, 0]);
  });

  test.each<[string, Script]>([
    ['has no such route', () => ({ status: 404, body: errorBody('not_found_error') })],
    ['fails', () => ({ status: 529, body: errorBody('overloaded_error') })],
    ['answers something else', () => ({ body: '{"ok":true}' })],
    ['is silent', () => new Promise(() => {})],
  ])('is an estimate, with a mark, if the provider %s', async (_, script) => {
    const { count, clock } = open(script);
    const counting = count();
    await settleDown();
    await clock.pass(10_000);
    const response = await counting;
    const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
    expect([response.status, response.headers.get('x-gateway-estimated')]).toEqual([200, 'true']);
    expect(tokens).toBeGreaterThan(5);
  });

  test('changes no cooldown: an entry whose counts fail serves as before, and is called once for each count', async () => {
    const models = ['first', 'second'].map((identifier, priority) =>
      entry('claude', { provider: 'anthropic', identifier, model: identifier, priority }),
    );
    const snapshot = snapshotOf(models, {
      strategy: 'Priority',
      cooldown: { failures: 1, within: 1e4, duration: 1e4 },
    });
    const { app, fake, ledger } = stage({
      snapshot,
      script: () => ({ status: 529, body: errorBody('overloaded_error') }),
    });
    for (let at = 0; at < 3; at += 1) {
      const headers = { 'x-api-key': KEY };
      const count = { method: 'POST', headers, body: JSON.stringify(COUNT) };
      expect((await app.request('/v1/messages/count_tokens', count)).headers.get('x-gateway-estimated')).toBe('true');
    }
    expect(fake.requests.map((request) => JSON.parse(sentText(request)).model)).toEqual(['first', 'first', 'first']);
    expect([ledger.asked.length, ledger.liveReservations()]).toEqual([0, 0]);
  });

  test('is refused as the provider refuses it', async () => {
    const body = errorBody('invalid_request_error', 'messages: at least one message is required');
    const { count } = open(() => ({ status: 400, body }));
    const response = await count();
    expect([response.status, await response.text()]).toEqual([400, body]);
  });

  test.each([
    ['a key that is blocked', keyRecord({ blocked: true }), COUNT, 403],
    ['a model that the key may not use', keyRecord({ models: ['other'] }), COUNT, 403],
    ['no messages', keyRecord(), { model: 'claude' }, 400],
  ])('is refused to %s', async (_, record, body, status) => {
    const { count, fake } = open(() => ({ body: '{"input_tokens":42}' }), record);
    const response = await count(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ type: 'error' });
    expect(fake.requests).toEqual([]);
  });
});
