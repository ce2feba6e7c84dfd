// Limits set with kubectl and seen by the OpenAI client, with clear messages.
import { type OpenAI, RateLimitError } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseMoney } from '../../functions/core/money/money.ts';
import type { SampleUpstream } from '../../infra/platforms/local/sample-upstream/server.ts';
import { eventually } from '../support/eventually.ts';
import { ASK, startTestStack, type TestStack } from '../support/stack.ts';

let stack: TestStack;
let openai: OpenAI;

const patch = (spec: object) =>
  stack.ok('patch', 'virtualkey', 'example-service', '--type=merge', '-p', JSON.stringify({ spec }));
const patchEntries = (places: ReadonlyArray<number>, params: object) => {
  const edits = places.flatMap((place) =>
    Object.entries(params).map(([name, value]) => ({
      op: 'add',
      path: `/spec/models/${place}/gatewayParams/${name}`,
      value,
    })),
  );
  return stack.ok('patch', 'gwi', 'sample', '--type=json', '-p', JSON.stringify(edits));
};
const ask = async (model = ASK.model) => {
  try {
    const { response } = await openai.chat.completions.create({ ...ASK, model }).withResponse();
    return { status: response.status, headers: response.headers, code: undefined, message: '' };
  } catch (error) {
    if (!(error instanceof RateLimitError)) throw error;
    return { status: error.status, headers: error.headers, code: error.code, message: error.message };
  }
};
type Stats = ReturnType<SampleUpstream['stats']['read']>;
const statsOf = async (model: string) =>
  ((await (await fetch(`${stack.endpoints.upstream}/stats`)).json()) as Stats).models[model];
const until = (is: (answer: Awaited<ReturnType<typeof ask>>) => boolean, model?: string) =>
  eventually(() => ask(model), is);

beforeAll(async () => {
  stack = await startTestStack();
  openai = await stack.client();
});
afterAll(() => stack?.stop());

test('every route spends from the one budget, to the nano-dollar that the upstream counts', async () => {
  const entry = { modelName: 'sample-claude', identifier: 'sample-claude', requiresAuth: false };
  const gatewayParams = {
    model: 'anthropic/sample-small',
    apiBase: stack.endpoints.upstream,
    inputCostPerMillionTokens: '0.15',
    outputCostPerMillionTokens: '0.60',
  };
  const added = [{ op: 'add', path: '/spec/models/-', value: { ...entry, gatewayParams } }];
  await stack.ok('patch', 'gwi', 'sample', '--type=json', '-p', JSON.stringify(added));
  await patch({ models: ['sample-small', 'sample-failover', 'sample-claude'] });
  const spend = async () => {
    await stack.resync();
    const shown = await stack.ok('get', 'vk', 'example-service', '-o', 'jsonpath={.status.currentSpend}');
    return parseMoney(shown) ?? 0n;
  };
  const ids = async () => (await openai.models.list()).data.map(({ id }) => id);
  await eventually(ids, (seen) => seen.includes('sample-claude'));
  const [spentBefore, countedBefore] = [await spend(), await statsOf('sample-small')];
  await openai.chat.completions.create(ASK);
  await openai.embeddings.create({ model: ASK.model, input: ['one', 'two three'] });
  await openai.responses.create({ model: ASK.model, input: 'Hello.' });
  for await (const _ of await openai.responses.create({ model: ASK.model, input: 'Hello.', stream: true }));
  const claude = { model: 'sample-claude', max_tokens: 50, messages: [{ role: 'user', content: 'Hello.' }] };
  for (const more of [{}, { stream: true }]) await openai.post('/messages', { body: { ...claude, ...more } });
  await openai.post('/messages/count_tokens', { body: claude });
  const counted = await statsOf('sample-small');
  const input = (counted?.promptTokens ?? 0) - (countedBefore?.promptTokens ?? 0);
  const output = (counted?.completionTokens ?? 0) - (countedBefore?.completionTokens ?? 0);
  expect((counted?.reported ?? 0) - (countedBefore?.reported ?? 0)).toBe(6);
  expect(await spend()).toBe(spentBefore + BigInt(input) * 150n + BigInt(output) * 600n);
});

test('an edited rpmLimit is in force soon, for earlier requests too, and so is its removal', async () => {
  const free = await ask();
  expect(free.headers.get('x-ratelimit-limit-requests')).toBeNull();
  await patch({ rpmLimit: 1000 });
  const counted = await until(({ headers }) => headers.get('x-ratelimit-limit-requests') === '1000');
  const used = 1000 - Number(counted.headers.get('x-ratelimit-remaining-requests'));
  await patch({ rpmLimit: used + 2 });
  const refused = await until(({ status }) => status === 429);
  expect(refused.code).toBe('rate_limit_exceeded');
  expect(refused.message).toMatch(
    /The rate limit of key "example-service" is reached: \d+ requests? per minute\. Try again in \d+ s\./,
  );
  const seconds = Number(refused.headers.get('retry-after'));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  await patch({ rpmLimit: null });
  const again = await until(({ status }) => status === 200);
  expect(again.headers.get('x-ratelimit-limit-requests')).toBeNull();
});

test('of many slow requests exactly as many run as maxParallelRequests allows', async () => {
  await patchEntries([1, 2], { model: 'openai/slow' });
  await patch({ maxParallelRequests: 3, tpmLimit: 1_000_000 });
  await until(({ headers }) => headers.get('x-ratelimit-limit-tokens') === '1000000');
  // Wait until the edit of the instance is in force too.
  const askedOfSlow = async () => {
    await ask('sample-failover');
    return (await statsOf('slow'))?.requests ?? 0;
  };
  await eventually(askedOfSlow, (count) => count > 0);
  // Slow entries answer after a second: all requests must have been sent by then, or they did not overlap.
  const crowd = async () => {
    const ends: Array<readonly [status: number, at: number]> = [];
    const one = async () => {
      const answer = await ask('sample-failover');
      ends.push([answer.status, performance.now()]);
      return answer;
    };
    const answers = await Promise.all(Array.from({ length: 20 }, one));
    const at = (is: (status: number) => boolean) => ends.filter(([status]) => is(status)).map(([, when]) => when);
    return {
      answers,
      isCrowd: Math.max(...at((status) => status === 429)) < Math.min(...at((status) => status === 200)),
    };
  };
  const { answers } = await eventually(crowd, ({ isCrowd }) => isCrowd);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
  expect(answers.filter(({ code }) => code === 'rate_limit_exceeded')).toHaveLength(17);
  expect(answers.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('1');
  await patch({ maxParallelRequests: null, tpmLimit: null });
  await until(({ headers }) => headers.get('x-ratelimit-limit-tokens') === null);
});

test('a model whose own budget is used up is refused by name, reported in the status, and others still work', async () => {
  await patch({ modelMaxBudget: { 'sample-small': { maxBudget: '0', budgetDuration: '1d' } } });
  const refused = await until(({ status }) => status === 429);
  expect(refused.code).toBe('budget_exceeded');
  expect(refused.message).toContain(
    'The budget of model "sample-small" of key "example-service" is zero: nothing may be spent',
  );
  expect((await ask('sample-failover')).status).toBe(200);
  const path = '{.status.conditions[?(@.type=="ModelsReady")].message} {.status.isActive}';
  const status = () => stack.ok('get', 'virtualkey', 'example-service', '-o', `jsonpath=${path}`);
  await eventually(status, (seen) => /this VirtualKey has a budget of 0 dollars on "sample-small".* true$/.test(seen));
  await patch({ modelMaxBudget: null });
  await until(({ status }) => status === 200);
});

test('a full entry is skipped for another of its name; when all are full, the client gets the time to retry', async () => {
  await patchEntries([1, 2], { model: 'openai/sample-small', rpm: 1 });
  const refused = await until(({ status }) => status === 429, 'sample-failover');
  expect(refused.code).toBe('rate_limit_exceeded');
  expect(refused.message).toContain('The rate limits of all providers of the model "sample-failover" are reached');
  expect((await ask()).status).toBe(200);
});
