import { beforeEach, expect, test } from 'vitest';
import { toFurtherScope } from '#core/keys/further-budgets.ts';
import { createScenario, type Scenario } from '#core/ledger/test/scenario.promises.ts';
import type { Ledger } from '#core/ports/ledger.ts';
import type { FurtherBudget } from '#core/ports/policy.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { completion, MESSAGES } from '../../../test/gateway/upstream.ts';

const PRICE = { input: '1000', output: '1000' };
let scenario: Scenario;
let ledger: Ledger;

beforeEach(async () => {
  scenario = createScenario();
  const process = scenario.process();
  await process.start();
  ledger = process;
});

const modelScope = (model: string, limit: bigint): FurtherBudget => ({
  scopeId: `model-${model}`,
  model,
  limit: `${limit}`,
  duration: '1d',
});

/** Each request costs 100 tokens: 0.1 dollars. */
function stageWith(models: ReadonlyArray<string>, ...furtherBudgets: ReadonlyArray<FurtherBudget>) {
  const keys = { [KEY]: keyRecord({ limit: '10', models, furtherBudgets }) };
  const snapshot = snapshotOf([entry('gpt', { price: PRICE }), entry('other', { price: PRICE })]);
  const script = () => ({ body: completion('hello', { prompt_tokens: 80, completion_tokens: 20 }) });
  return stage({
    keys,
    snapshot,
    script,
    deps: { ledger, ids: scenario.ids, clock: scenario.time.clock, timer: scenario.time.timer },
  });
}
const ask = (model: string) => ({ model, messages: MESSAGES, max_completion_tokens: 50 });

test('a key’s budget for a model refuses only that model, and names the key', async () => {
  const { chat } = stageWith([], modelScope('gpt', 100_000_000n));
  expect((await chat(ask('gpt'))).status).toBe(200);
  const refused = await chat(ask('gpt'));
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({
    error: {
      code: 'budget_exceeded',
      message: expect.stringMatching(
        /^The budget of model "gpt" of key "billing" is exceeded: 0\.1 dollars per 1d\. It resets at .*; ask for a larger maxBudget in modelMaxBudget/,
      ),
    },
  });
  expect((await chat(ask('other'))).status).toBe(200);
});

test('a spent budget of a further window names the field budgets', async () => {
  const { chat } = stageWith([], windowScope('1h', 100_000_000n));
  expect((await chat(ask('gpt'))).status).toBe(200);
  expect(await (await chat(ask('gpt'))).json()).toMatchObject({
    error: {
      message: expect.stringMatching(
        /^The budget of key "billing" is exceeded: .*; ask for a larger maxBudget in budgets/,
      ),
    },
  });
});

test('a request is charged to the key and its model, and clamped by the smaller rest of the two', async () => {
  const { chat } = stageWith([], modelScope('gpt', 120_000_000n));
  const clamped = await chat({ ...ask('gpt'), max_completion_tokens: 500 });
  expect(clamped.headers.get('x-gateway-clamped-to')).not.toBeNull();
  const { key } = keyRecord({ limit: '10' });
  const scopes = [key, toFurtherScope(key)(modelScope('gpt', 120_000_000n))];
  expect(await ledger.spend(scopes)).toMatchObject({ value: [{ spent: 100_000_000n }, { spent: 100_000_000n }] });
});

test('GET key shows each budget, and that the key works as long as one of its models does', async () => {
  const { chat, get } = stageWith(['gpt', 'other'], modelScope('gpt', 100_000_000n), modelScope('other', 100_000_000n));
  await chat(ask('gpt'));
  const keyReport = await (await get('/key')).json();
  expect(keyReport).toMatchObject({
    isActive: true,
    scopes: [
      { kind: 'key', name: 'billing', currentSpend: '0.1' },
      { kind: 'model', name: 'gpt', maxBudget: '0.1', currentSpend: '0.1', remaining: '0' },
      { kind: 'model', name: 'other', maxBudget: '0.1', currentSpend: '0', remaining: '0.1' },
    ],
  });
  await chat(ask('other'));
  expect(await (await get('/key')).json()).toMatchObject({ isActive: false });
});

const windowScope = (duration: string, limit: bigint): FurtherBudget => ({
  scopeId: `window-${duration}`,
  limit: `${limit}`,
  duration,
});

test('a key with several windows is charged in all of them, and the first exceeded one refuses every model', async () => {
  const { chat, get } = stageWith([], windowScope('1d', 300_000_000n), windowScope('1h', 100_000_000n));
  expect((await chat(ask('gpt'))).status).toBe(200);
  expect(await (await chat(ask('other'))).json()).toMatchObject({
    error: {
      code: 'budget_exceeded',
      message: expect.stringMatching(/^The budget of key "billing" is exceeded: 0\.1 dollars per 1h\. It resets at /),
    },
  });
  expect(await (await get('/key')).json()).toMatchObject({
    isActive: false,
    currentSpend: '0.1',
    scopes: [
      { kind: 'key', maxBudget: '10', currentSpend: '0.1' },
      { kind: 'key', maxBudget: '0.3', budgetDuration: '1d', currentSpend: '0.1' },
      { kind: 'key', maxBudget: '0.1', budgetDuration: '1h', currentSpend: '0.1', remaining: '0' },
    ],
  });
});
