import { expect, test } from 'vitest';
import type { KeyRecord } from '#core/ports/policy.ts';
import { entry, KEY, keyRecord, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, type World } from '../../../test/gateway/stage.ts';
import { chunk, DONE, MESSAGES, type Script, SSE, stuckAfter, USAGE_CHUNK } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES };
const REMAINING = 'x-gateway-budget-remaining';
const leftIn = ({ headers }: Response) => [headers.get(REMAINING), headers.get('x-gateway-budget-reset')];
/** The windows of a key's own budget, and of seven days. */
const [MONTH, WEEK] = ['2026-12-20T12:00:00.000Z', '2026-11-28T12:00:00.000Z'];

/** A key of ten dollars that has spent a quarter of one. */
function spender(world: World = {}, record: KeyRecord = keyRecord({ limit: '10' })) {
  const made = stage({ keys: { [KEY]: record }, ...world });
  made.ledger.spendNow('key-scope', '0.25');
  return made;
}

test('a plain reply has the rest of the budget after its own charge', async () => {
  const { chat } = spender();
  expect(leftIn(await chat(CHAT))).toEqual(['9.74998', MONTH]);
});

test('a stream has the rest of the budget at its begin', async () => {
  const { chat } = spender({ script: () => ({ headers: SSE, body: [chunk({ content: 'a' }), USAGE_CHUNK, DONE] }) });
  const response = await chat({ ...CHAT, stream: true });
  expect(leftIn(response)).toEqual(['9.75', MONTH]);
  await response.text();
});

test('the budget with the smallest rest is shown: of the key, its user and teams, and its further windows', async () => {
  const budget = (limit: string, duration: string) => ({ limit, duration, alignment: 'Rolling' as const });
  const team = scope('team', { budget: budget('9500000000', '7d') });
  const hour = { scopeId: 'hour', limit: '9000000000', duration: '1h' };
  const roomy = scope('user', { budget: budget('99000000000', '7d') });
  const plain = spender({}, keyRecord({ limit: '10' }, [team, roomy]));
  expect(leftIn(await plain.get('/models'))).toEqual(['9.5', WEEK]);
  const windowed = spender({}, keyRecord({ limit: '10', furtherBudgets: [hour] }, [team, roomy]));
  expect(leftIn(await windowed.get('/models'))).toEqual(['9', '2026-11-21T13:00:00.000Z']);
  windowed.ledger.spendNow('team-scope', '20');
  expect(leftIn(await windowed.chat(CHAT))).toEqual(['0', WEEK]);
});

test('a budget for one model counts for requests to that model', async () => {
  const ofModel = (model: string, limit: string) => ({ scopeId: model, model, limit, duration: '7d' });
  const record = keyRecord({ limit: '10', furtherBudgets: [ofModel('gpt', '5000000000'), ofModel('other', '1')] });
  const { chat, get } = spender({}, record);
  expect(leftIn(await chat(CHAT))).toEqual(['4.99998', '2026-11-27T12:00:00.000Z']);
  expect(leftIn(await get('/models'))).toEqual(['9.74998', MONTH]);
});

const post = (path: string, body: unknown) => ({ path, init: { method: 'POST', body: JSON.stringify(body) } });
const anthropic = entry('claude', { provider: 'anthropic', maxOutputTokens: 10 });

test.each([
  ['the models', { path: '/v1/models', init: {} }, 200],
  ['one model', { path: '/models/gpt', init: {} }, 200],
  ['a model that is not there', { path: '/models/none', init: {} }, 404],
  ['the key', { path: '/key', init: {} }, 200],
  ['a count', post('/messages/count_tokens', { model: 'claude', messages: MESSAGES }), 200],
  ['a count of no model', post('/v1/messages/count_tokens', { model: 'none', messages: MESSAGES }), 404],
  ['a body that is none', post('/chat/completions', 'text'), 400],
  ['messages without a limit', post('/messages', { model: 'claude', messages: 'none' }), 400],
  ['a response of no model', post('/responses', { model: 'none', input: 'x' }), 404],
  ['an embedding without the route', post('/embeddings', { model: 'claude', input: 'x' }), 404],
  ['a provider that refuses', post('/chat/completions', CHAT), 422],
])('%s has the rest of the budget, with an unchanged status', async (_, { path, init }, status) => {
  const script: Script = ({ url }) =>
    url.endsWith('count_tokens') ? { body: '{"input_tokens":3}' } : { status: 422, body: 'no' };
  const { app } = spender({ script, snapshot: snapshotOf([entry('gpt'), anthropic]) });
  const response = await app.request(path, { ...init, headers: { authorization: `Bearer ${KEY}` } });
  expect([response.status, ...leftIn(response)]).toEqual([status, '9.75', MONTH]);
});

test('refusals of the budget itself, and of keys that do not work, have it too', async () => {
  const { chat, ledger } = spender({}, keyRecord({ limit: '0.3' }));
  ledger.spendNow('key-scope', '1');
  expect(leftIn(await chat(CHAT))).toEqual(['0', MONTH]);
  const blocked = spender({}, keyRecord({ limit: '10', blocked: true }));
  expect(leftIn(await blocked.chat(CHAT))).toEqual(['9.75', MONTH]);
  const held = spender({ script: () => ({ headers: SSE, body: stuckAfter(chunk({ content: 'a' })) }) });
  void held.chat({ ...CHAT, stream: true, max_tokens: 960_000, n: 5 });
  await expect.poll(() => held.ledger.liveReservations()).toBe(1);
  const response = await held.chat({ ...CHAT, max_tokens: 960_000, n: 5 });
  expect([response.status, ...leftIn(response)]).toEqual([429, '9.75', MONTH]);
});

test('a key without a budget, and a client without a key, get no such headers', async () => {
  const { chat, get } = stage({ keys: { [KEY]: keyRecord({ limit: '' }) } });
  expect(leftIn(await chat(CHAT))).toEqual([null, null]);
  expect(leftIn(await get('/models', null))).toEqual([null, null]);
});

test('the store is read once if the process does not know the spend, but not after a wait that already failed', async () => {
  const { app, ledger, chat } = spender();
  let asked = 0;
  const spend = ledger.spend;
  ledger.knownSpend = (scopes) => scopes.map(() => undefined);
  ledger.spend = (...of) => {
    asked += 1;
    return spend(...of);
  };
  const headers = { authorization: `Bearer ${KEY}` };
  expect(leftIn(await app.request('/models', { headers }))).toEqual(['9.75', MONTH]);
  expect([(await chat(CHAT)).headers.has(REMAINING), asked]).toEqual([false, 1]);
  ledger.fail('reserve');
  expect([(await chat(CHAT)).status, asked]).toEqual([503, 1]);
  // Replies that need no store succeed without one.
  const response = await app.request('/models', { headers });
  expect([response.status, response.headers.has(REMAINING)]).toEqual([200, false]);
});
