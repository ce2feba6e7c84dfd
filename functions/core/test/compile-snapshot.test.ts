import { expect, test } from 'vitest';
import { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { compileSnapshot } from '../models/compile-snapshot.ts';
import { Snapshot } from '../models/snapshot.ts';

const ref = {
  nameRef: 's',
  keys: { hostSecret: 'h', portSecret: 'p', passwordSecret: 'w', usernameSecret: 'u', dbnameSecret: 'd' },
};
const instance = { uid: 'u-1', namespace: 'default', name: 'main' };
const compiled = (...models: ReadonlyArray<object>) =>
  compileSnapshot(instance, GatewayInstanceSpec.parse({ databaseSecretRef: ref, redisSecretRef: ref, models }));
const entry = (params: object, more: object = {}) => ({
  modelName: 'm',
  identifier: 'i',
  requiresAuth: false,
  gatewayParams: { model: 'openai/gpt', ...params },
  ...more,
});
const first = (...models: ReadonlyArray<object>) => compiled(...models).models[0];

test('a snapshot is one by its schema, with the defaults of routing in milliseconds', () => {
  const snapshot = compiled(entry({}));
  expect(Snapshot.parse(snapshot)).toEqual(snapshot);
  expect(snapshot).toMatchObject({
    version: 1,
    instance,
    routing: {
      strategy: 'SimpleShuffle',
      retries: 2,
      timeouts: { connect: 5000, firstByte: 60_000, idle: 60_000, total: 600_000 },
      cooldown: { failures: 3, within: 30_000, duration: 30_000 },
    },
  });
});

test('the provider ends at the first slash, the rest may hold more; customLLMProvider overrides it', () => {
  expect(first(entry({ model: 'openrouter/meta/llama-3' }))).toMatchObject({
    provider: 'openrouter',
    model: 'meta/llama-3',
  });
  expect(first(entry({ model: 'a/b', customLLMProvider: 'anthropic' }))).toMatchObject({
    provider: 'anthropic',
    model: 'b',
  });
});

test('credentials are named, never contained; without requiresAuth there are none', () => {
  const modelCredentials = { nameRef: 'openai', keys: { apiKey: 'key', apiBase: 'base' } };
  expect(first(entry({}, { requiresAuth: true, modelCredentials }))?.credentials).toEqual({
    apiKey: { secret: 'openai', secretKey: 'key' },
    apiBase: { secret: 'openai', secretKey: 'base' },
  });
  expect(first(entry({ apiBase: 'http://x' }))).toMatchObject({
    credentials: {},
    apiBase: 'http://x',
    requiresAuth: false,
  });
});

test('a price is input and output, or of embeddings the input alone; zero is a price', () => {
  const price = (params: object) => first(entry(params))?.price;
  expect(price({ inputCostPerMillionTokens: '0', outputCostPerMillionTokens: '0' })).toEqual({
    input: '0',
    output: '0',
  });
  expect(price({ outputCostPerMillionTokens: '1' })).toBeUndefined();
  expect(
    price({
      inputCostPerMillionTokens: '1',
      outputCostPerMillionTokens: '2',
      cachedInputCostPerMillionTokens: '0.5',
      cacheWriteCostPerMillionTokens: '3',
    }),
  ).toEqual({ input: '1', output: '2', cachedInput: '0.5', cacheWrite: '3' });
});

test('every other parameter is carried; what is left out has its default or is absent', () => {
  const params = {
    weight: 3,
    priority: 2,
    rpm: 10,
    tpm: 20,
    timeout: '90s',
    maxInputTokens: 1000,
    maxOutputTokens: 50,
    toolCosts: { webSearch: '0.01' },
  };
  expect(first(entry(params))).toMatchObject({ ...params, timeout: 90_000 });
  const bare = first(entry({}));
  expect(bare).toMatchObject({ weight: 1, priority: 0 });
  for (const name of ['rpm', 'tpm', 'timeout', 'maxInputTokens', 'maxOutputTokens', 'apiBase', 'price', 'toolCosts']) {
    expect(JSON.stringify(bare)).not.toContain(name);
  }
});

test('the same spec gives the same bytes, in whatever order its credentials are written', () => {
  const text = (keys: object) =>
    JSON.stringify(compiled(entry({}, { requiresAuth: true, modelCredentials: { nameRef: 's', keys } })));
  expect(text({ apiKey: 'a', apiBase: 'b' })).toBe(text({ apiBase: 'b', apiKey: 'a' }));
});
