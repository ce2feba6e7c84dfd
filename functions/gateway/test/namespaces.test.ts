// Requests with the policy of their namespace: its budget and limits, those per key, its models and its Team.
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { StartableLedger } from '#core/ledger/ledger.ts';
import { createScenario, type Scenario } from '#core/ledger/test/scenario.promises.ts';
import type { KeyPolicy, NamespacePolicy, ScopePolicy } from '#core/ports/policy.ts';
import { entry, KEY, keyRecord, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { codeOf, stage } from '../../../test/gateway/stage.ts';
import { completion, MESSAGES } from '../../../test/gateway/upstream.ts';

const PRICE = { input: '1000', output: '1000' };
/** Each request costs 100 tokens: 0.1 dollars. */
const COST = 100_000_000n;
const CHAT = { model: 'gpt', messages: MESSAGES, max_completion_tokens: 50 };
const budget = (limit: bigint, duration = '1d') => ({ limit: `${limit}`, duration, alignment: 'Rolling' as const });

let scenario: Scenario;
let ledger: StartableLedger;
const begin = async () => {
  scenario = createScenario();
  ledger = scenario.process();
  await ledger.start();
};
beforeEach(begin);

const namespaceOf = (more: Partial<NamespacePolicy> = {}): NamespacePolicy => ({
  scopeId: 'namespace-scope',
  kind: 'namespace',
  name: 'research',
  of: 'default/main',
  blocked: false,
  models: [],
  anchor: 0,
  chargedScopeIds: [],
  policyName: 'labs',
  ...more,
});

function stageWith(
  namespace: NamespacePolicy | undefined,
  {
    key = {},
    others = [],
  }: { readonly key?: Partial<KeyPolicy> & { limit?: string | undefined }; readonly others?: ScopePolicy[] } = {},
) {
  const anchor = Date.UTC(2026, 0, 1);
  const record = () => keyRecord({ limit: '10', anchor, ...key }, [...(namespace ? [namespace] : []), ...others]);
  const staged = stage({
    keys: { [KEY]: record() },
    snapshot: snapshotOf([entry('gpt', { price: PRICE }), entry('other', { price: PRICE })]),
    script: () => ({ body: completion('hello', { prompt_tokens: 80, completion_tokens: 20 }) }),
    deps: {
      ledger,
      ids: scenario.ids,
      clock: scenario.time.clock,
      timer: scenario.time.timer,
      hash: (text) => (text === KEY ? `hash of ${text}` : createHash('sha256').update(text).digest('hex')),
    },
  });
  /** Replaces the policy of the namespace; it is in force when this resolves. */
  const setPolicy = async (policy: NamespacePolicy, holderUid = 'uid') => {
    staged.keys[KEY] = { ...keyRecord({ limit: '10', anchor, ...key }, [policy, ...others]), holderUid };
    await scenario.time.advance(6000);
  };
  return { ...staged, setPolicy };
}
const messageOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string } }).error.message;
const report = async (get: (path: string) => Promise<Response>) =>
  (await (await get('/key')).json()) as { isActive: boolean; scopes: ReadonlyArray<Record<string, unknown>> };

describe('the budget of a namespace', () => {
  test('refuses when it is spent: the answer names the namespace, the instance and the field', async () => {
    const { chat, get } = stageWith(namespaceOf({ budget: budget(COST) }));
    const first = await chat(CHAT);
    expect([first.status, first.headers.get('x-gateway-budget-remaining')]).toEqual([200, '0']);
    const refused = await chat(CHAT);
    expect(refused.status).toBe(429);
    expect(await messageOf(refused)).toMatch(
      /^The budget of namespace "research" on instance "default\/main" is exceeded: 0\.1 dollars per 1d\. It resets at .*; ask for a larger maxBudget in perNamespace of the key policy/,
    );
    const { isActive, scopes } = await report(get);
    expect(isActive).toBe(false);
    expect(scopes).toMatchObject([
      { kind: 'key', name: 'billing' },
      {
        kind: 'namespace',
        name: 'research',
        keyPolicy: 'labs',
        maxBudget: '0.1',
        currentSpend: '0.1',
        remaining: '0',
      },
    ]);
  });

  test('is shared by the keys of the namespace', async () => {
    const namespace = namespaceOf({ budget: budget(COST) });
    const { chat, keys } = stageWith(namespace);
    const other = KEY.replace(/.{8}$/, 'AAAAAAAA');
    keys[other] = keyRecord({ scopeId: 'other-key', limit: '10' }, [namespace]);
    expect((await chat(CHAT)).status).toBe(200);
    expect(await codeOf(await chat(CHAT))).toEqual([429, 'budget_exceeded']);
  });
});

describe('limits', () => {
  test('of a namespace refuse with its name', async () => {
    const { chat } = stageWith(namespaceOf({ limits: { rpmLimit: 1 } }));
    expect((await chat(CHAT)).status).toBe(200);
    expect(await messageOf(await chat(CHAT))).toMatch(
      /^The rate limit of namespace "research" on instance "default\/main" is reached: 1 request per minute\./,
    );
  });

  test.each([
    [5, 2, 2],
    [2, 5, 2],
    [undefined, 2, 2],
    [2, undefined, 2],
  ])('of the key (%s) and per key (%s): the smaller counts', async (own, perKey, smaller) => {
    const { chat } = stageWith(namespaceOf({ perKey: { limits: { rpmLimit: perKey, tpmLimit: 100_000 } } }), {
      key: own === undefined ? {} : { limits: { rpmLimit: own } },
    });
    const response = await chat(CHAT);
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe(`${smaller}`);
    expect(response.headers.get('x-ratelimit-limit-tokens')).toBe('100000');
  });
});

describe('models', () => {
  const modelsIn = async (response: Response) =>
    ((await response.json()) as { data: ReadonlyArray<{ id: string }> }).data.map(({ id }) => id);

  test('of a namespace cut those of the key, in GET models too', async () => {
    const { chat, get } = stageWith(namespaceOf({ models: ['gpt'] }));
    expect(await modelsIn(await get('/models'))).toEqual(['gpt']);
    expect(await report(get)).toMatchObject({ models: ['gpt'], isActive: true });
    expect((await chat(CHAT)).status).toBe(200);
    const refused = await chat({ ...CHAT, model: 'other' });
    expect(refused.status).toBe(403);
    expect(await messageOf(refused)).toMatch(
      /^This API key's namespace "research" on instance "default\/main" may not use the model "other"\./,
    );
  });

  test('of which nothing is left allow nothing', async () => {
    const { chat, get } = stageWith(namespaceOf({ models: ['gpt'] }), { key: { models: ['other'] } });
    expect(await modelsIn(await get('/models'))).toEqual([]);
    expect(await report(get)).toMatchObject({ isActive: false });
    for (const model of ['gpt', 'other'])
      expect(await codeOf(await chat({ ...CHAT, model }))).toEqual([403, 'model_access_denied']);
  });
});

describe('the Team of the key policy', () => {
  test('is charged, and its block, models and budget act', async () => {
    const team = scope('team', { name: 'shared', budget: budget(COST) });
    const { chat } = stageWith(namespaceOf({ chargedScopeIds: [team.scopeId] }), { others: [team] });
    expect((await chat(CHAT)).status).toBe(200);
    expect(await messageOf(await chat(CHAT))).toMatch(/^The budget of team "shared" of key policy "labs" is exceeded/);
  });

  test('is in the answer as that of the key policy, also if it is blocked or lacks the model', async () => {
    const team = scope('team', { name: 'shared', models: ['other'] });
    const policy = namespaceOf({ chargedScopeIds: [team.scopeId] });
    expect(await messageOf(await stageWith(policy, { others: [team] }).chat(CHAT))).toMatch(
      /^The team "shared" of key policy "labs" may not use the model "gpt"\./,
    );
    const blocked = { ...team, blocked: true };
    expect(await messageOf(await stageWith(policy, { others: [blocked] }).chat(CHAT))).toMatch(
      /^The team "shared" of key policy "labs" is blocked\. Ask the platform team to unblock it\./,
    );
  });

  test('that is missing refuses, and the answer names the namespace, the key policy and the platform team', async () => {
    const { chat } = stageWith(namespaceOf({ blocked: true, missingOwnerReason: 'TeamNotFound' }));
    const refused = await chat(CHAT);
    expect(await codeOf(refused.clone())).toEqual([403, 'key_blocked']);
    expect(await messageOf(refused)).toBe(
      'The team of the key policy "labs" is missing or not ready, so requests of namespace "research" on instance "default/main" cannot be charged. Ask the platform team to correct the team or the key policy.',
    );
  });
});

describe('the budget per key', () => {
  const perKey = (limit: bigint, sinceGeneration: number, duration = '1d') =>
    namespaceOf({ perKey: { budget: { ...budget(limit, duration), sinceGeneration } } });
  const spentPerKey = async (get: (path: string) => Promise<Response>) =>
    (await report(get)).scopes.filter(({ kind }) => kind === 'key')[1]?.currentSpend;

  test('refuses when it is spent, with the name of the key and the field', async () => {
    const { chat, get } = stageWith(perKey(COST, 1));
    expect((await chat(CHAT)).status).toBe(200);
    expect(await messageOf(await chat(CHAT))).toMatch(
      /^The budget of key "billing" is exceeded: 0\.1 dollars per 1d\. It resets at .*; ask for a larger maxBudget in perKey of the key policy/,
    );
    const { scopes } = await report(get);
    expect(scopes).toMatchObject([
      { kind: 'key', name: 'billing', maxBudget: '10', currentSpend: '0.1' },
      { kind: 'namespace', name: 'research', maxBudget: null, currentSpend: null },
      { kind: 'key', name: 'billing', keyPolicy: 'labs', maxBudget: '0.1', currentSpend: '0.1' },
    ]);
    expect(scopes[0]).not.toHaveProperty('keyPolicy');
  });

  test('that is spent refuses in place of a budget that only leaves too little', async () => {
    const { chat, setPolicy } = stageWith(perKey(100n * COST, 1), { key: { budget: budget(COST + 1n) } });
    expect((await chat(CHAT)).status).toBe(200);
    expect(await messageOf(await chat(CHAT))).toMatch(/^The budget of key "billing" leaves too little/);
    await setPolicy(perKey(COST, 1));
    expect(await messageOf(await chat(CHAT))).toMatch(
      /^The budget of key "billing" is exceeded: 0\.1 dollars per 1d\. .* ask for a larger maxBudget in perKey of the key policy/,
    );
  });

  test('includes what the key has spent in the window before, once, and again after a time without it', async () => {
    const { chat, get, setPolicy } = stageWith(namespaceOf());
    await chat(CHAT);
    await ledger.flush();
    await setPolicy(perKey(100n * COST, 1));
    expect(await spentPerKey(get)).toBe('0.1');
    await chat(CHAT);
    expect(await spentPerKey(get)).toBe('0.2');
    await ledger.flush();
    // Another limit is no other window.
    await setPolicy(perKey(50n * COST, 1));
    expect(await spentPerKey(get)).toBe('0.2');
    await setPolicy(namespaceOf({ lastSince: 1 }));
    await chat(CHAT);
    await ledger.flush();
    await setPolicy(perKey(100n * COST, 2));
    expect(await spentPerKey(get)).toBe('0.3');
    await setPolicy(perKey(100n * COST, 3, '1h'));
    expect(await spentPerKey(get)).toBe('0.3');
    await scenario.time.advance(3_600_000);
    expect(await spentPerKey(get)).toBe('0');
    await chat(CHAT);
    expect(await spentPerKey(get)).toBe('0.1');
  });

  test('of a key that another VirtualKey has adopted includes what it spent meanwhile in another namespace', async () => {
    const { chat, get, setPolicy } = stageWith(perKey(100n * COST, 1));
    await chat(CHAT);
    await setPolicy(namespaceOf({ scopeId: 'other-namespace', name: 'other' }), 'second');
    await chat(CHAT);
    await ledger.flush();
    await setPolicy(perKey(100n * COST, 1), 'third');
    expect(await spentPerKey(get)).toBe('0.2');
  });

  test('survives a counter store that loses everything', async () => {
    const { chat, get, setPolicy } = stageWith(namespaceOf());
    await chat(CHAT);
    await ledger.flush();
    await setPolicy(perKey(3n * COST, 1));
    await chat(CHAT);
    scenario.wipe();
    await scenario.time.advance(10_000);
    expect(await spentPerKey(get)).toBe('0.2');
    expect((await chat(CHAT)).status).toBe(200);
    expect(await codeOf(await chat(CHAT))).toEqual([429, 'budget_exceeded']);
  });
});

test.each([
  ['with a budget', budget(100n * COST)],
  ['without a budget', undefined],
])('a namespace without budget and limits costs a key %s no call to the counter store', async (_, own) => {
  const callsWith = async (namespace: NamespacePolicy | undefined) => {
    await begin();
    const { chat } = stageWith(namespace, { key: { budget: own } });
    await chat(CHAT);
    await scenario.time.advance(2000);
    scenario.calls.length = 0;
    for (let request = 0; request < 20; request += 1) {
      expect((await chat(CHAT)).status).toBe(200);
      await scenario.time.advance(30);
    }
    return { calls: scenario.calls.length, requests: scenario.calls.flatMap(({ requests }) => requests).length };
  };
  const without = await callsWith(undefined);
  expect(await callsWith(namespaceOf())).toEqual(without);
  expect(await callsWith(namespaceOf({ perKey: {} }))).toEqual(without);
  // A limit of requests needs the counter store for each.
  expect((await callsWith(namespaceOf({ limits: { rpmLimit: 1000 } }))).requests).toBe(20);
});
