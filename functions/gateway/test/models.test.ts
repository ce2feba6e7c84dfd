import { describe, expect, test } from 'vitest';
import { entry, KEY, keyRecord, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { codeOf, stage } from '../../../test/gateway/stage.ts';

const ANTHROPIC = { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' };
const snapshot = snapshotOf([
  entry('gpt', {
    maxInputTokens: 128_000,
    maxOutputTokens: 4096,
    price: { input: '1', output: '2', cachedInput: '0.5' },
  }),
  entry('gpt', { identifier: 'second', maxInputTokens: 64_000, price: { input: '3', output: '9' } }),
  entry('team/claude 4', { provider: 'anthropic', maxInputTokens: 200_000 }),
  entry('embed', { price: { input: '0.02' } }),
  entry('unpriced', { price: undefined }),
]);
const pricing = (more: object) => ({ unit: 'dollars per million tokens', ...more });
const openai = (id: string, more: object) => ({
  id,
  object: 'model',
  created: 0,
  owned_by: 'gateway-operator',
  ...more,
});
const GPT = openai('gpt', {
  context_window: 64_000,
  max_output_tokens: 4096,
  pricing: pricing({ input: '3', output: '9' }),
});

describe('the models of a key', () => {
  test("are listed in OpenAI's shape, with what any of their entries can do and the maximum cost of an entry", async () => {
    const { get } = stage({ snapshot });
    for (const path of ['/models', '/v1/models'])
      expect(await (await get(path)).json()).toEqual({
        object: 'list',
        data: [
          GPT,
          openai('team/claude 4', { context_window: 200_000, pricing: pricing({ input: '1', output: '2' }) }),
          openai('embed', { pricing: pricing({ input: '0.02' }) }),
          openai('unpriced', {}),
        ],
      });
  });

  test("are listed in Anthropic's shape to its clients", async () => {
    const { app } = stage({ snapshot, keys: { [KEY]: keyRecord({ models: ['team/claude 4', 'gpt'] }) } });
    const response = await app.request('/v1/models?limit=1000', { headers: ANTHROPIC });
    expect(await response.json()).toMatchObject({
      has_more: false,
      first_id: 'gpt',
      last_id: 'team/claude 4',
      data: [
        { type: 'model', id: 'gpt', display_name: 'gpt', created_at: '1970-01-01T00:00:00Z', max_tokens: 4096 },
        { id: 'team/claude 4', max_input_tokens: 200_000 },
      ],
    });
  });

  test('are also shown one by one, whatever letters their names have', async () => {
    const { get, app } = stage({ snapshot });
    expect(await (await get('/models/gpt')).json()).toEqual(GPT);
    for (const path of ['/v1/models/team/claude%204', '/models/team%2Fclaude%204'])
      expect(await (await get(path)).json()).toMatchObject({ id: 'team/claude 4' });
    expect(await (await app.request('/v1/models/gpt', { headers: ANTHROPIC })).json()).toMatchObject({ type: 'model' });
  });

  test.each(['/models/other', '/models/GPT', '/models/gpt/', '/models/%ff'])('do not contain %s', async (path) => {
    const record = keyRecord({}, [scope('team', { models: ['gpt'] })]);
    const { get } = stage({ snapshot, keys: { [KEY]: record } });
    expect(await codeOf(await get(path))).toEqual([404, 'model_not_found']);
    expect(await codeOf(await get('/models/embed'))).toEqual([404, 'model_not_found']);
  });
});
