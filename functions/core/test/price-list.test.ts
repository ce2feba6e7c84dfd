import { describe, expect, test } from 'vitest';
import { SnapshotEntry } from '../models/snapshot.ts';
import { listingOf, modelEntryPrice } from '../money/price-list.ts';

describe('a model entry', () => {
  test('without a price in its manifest costs what its provider lists', () => {
    expect(modelEntryPrice({ model: 'openai/gpt-4o-mini' })).toEqual({
      price: { input: '0.15', output: '0.6', cachedInput: '0.075' },
      maxInputTokens: 128_000,
    });
  });

  test('with a price in its manifest costs that and nothing else: no member is filled in from the list', () => {
    const params = { model: 'openai/gpt-4o-mini', inputCostPerMillionTokens: '9', outputCostPerMillionTokens: '0' };
    expect(modelEntryPrice(params).price).toEqual({ input: '9', output: '0' });
    expect(
      modelEntryPrice({ ...params, cachedInputCostPerMillionTokens: '1', cacheWriteCostPerMillionTokens: '2' }).price,
    ).toEqual({ input: '9', output: '0', cachedInput: '1', cacheWrite: '2' });
    expect(modelEntryPrice({ ...params, cacheWriteLongCostPerMillionTokens: '4' }).price).toEqual({
      input: '9',
      output: '0',
      cacheWriteLong: '4',
    });
  });

  test('with an input price alone has a price of embeddings, whatever is listed', () => {
    const params = { model: 'openai/gpt-4o-mini', inputCostPerMillionTokens: '9' };
    expect(modelEntryPrice(params).price).toEqual({ input: '9' });
    expect(modelEntryPrice({ model: 'openai/text-embedding-3-small' }).price).toEqual({ input: '0.02' });
  });

  test.each([
    { outputCostPerMillionTokens: '9' },
    { cachedInputCostPerMillionTokens: '9' },
    { cacheWriteCostPerMillionTokens: '9' },
    { cacheWriteLongCostPerMillionTokens: '9' },
  ])('without an input price (%j) has none, even if one is listed', (half) => {
    expect(modelEntryPrice({ model: 'openai/gpt-4o-mini', ...half }).price).toBeUndefined();
  });

  test('without a listed price of its model has the listed context window', () => {
    expect(modelEntryPrice({ model: 'openai/gpt-4o-audio-preview' })).toEqual({
      price: undefined,
      maxInputTokens: 128_000,
    });
    const named = { inputCostPerMillionTokens: '40', outputCostPerMillionTokens: '80' };
    expect(modelEntryPrice({ model: 'openai/gpt-4o-audio-preview', ...named })).toMatchObject({
      price: { input: '40', output: '80' },
      maxInputTokens: 128_000,
    });
  });

  test('keeps the context window of its manifest', () => {
    expect(modelEntryPrice({ model: 'openai/gpt-4o-mini', maxInputTokens: 7 }).maxInputTokens).toBe(7);
  });

  test.each([
    ['of a provider that nobody keeps a list of', { model: 'vllm/gpt-4o' }],
    ['that its provider does not list', { model: 'openai/my-finetune' }],
    ['of nobody', {}],
    ['that is billed by the minute', { model: 'groq/whisper-large-v3' }],
  ])('%s has no price', (_, params) => {
    expect(modelEntryPrice(params).price).toBeUndefined();
  });

  test.each([
    [{ model: 'ours/gpt-4o-mini', customLLMProvider: 'openai' }, '0.15'],
    [{ model: 'OpenAI/GPT-4o-mini' }, '0.15'],
    [{ model: 'azure/gpt-4o-mini' }, '0.15'],
    [{ model: 'gemini/gemini-2.5-pro' }, '1.25'],
    [{ model: 'openrouter/openai/gpt-4o-mini' }, '0.15'],
  ])('is found by its provider and its name: %j', (params, input) => {
    expect(modelEntryPrice(params).price?.input).toBe(input);
  });
});

test('a model whose long prompts cost more is listed with its tiers', () => {
  expect(listingOf('google', 'gemini-2.5-pro')).toMatchObject({
    price: { input: '1.25', output: '10', tiers: [{ above: 200_000, input: '2.5', output: '15' }] },
  });
});

test('a model that writes to the cache is listed with what minutes and an hour cost', () => {
  expect(listingOf('anthropic', 'claude-sonnet-4-20250514')?.price).toEqual({
    input: '3',
    output: '15',
    cachedInput: '0.3',
    cacheWrite: '3.75',
    cacheWriteLong: '6',
  });
});

test('the first row that matches counts, by a name or by a pattern', async () => {
  const { default: table } = await import('../money/price-table.json', { with: { type: 'json' } });
  const tests = {
    '=': (text: string, name: string) => name === text,
    '^': (text: string, name: string) => name.startsWith(text),
    $: (text: string, name: string) => name.endsWith(text),
    '*': (text: string, name: string) => name.includes(text),
    '/': (text: string, name: string) => new RegExp(text).test(name),
  };
  const matches = (match: string, name: string) =>
    match
      .split(' ')
      .some((alternative) =>
        alternative.split('&').every((part) => tests[part.charAt(0) as keyof typeof tests](part.slice(1), name)),
      );
  for (const [list, { rows }] of Object.entries(table.lists).filter(([, { also }]) => also.length === 0)) {
    const texts = rows.flatMap(({ match }) => match.split(/[ &]/).map((part) => part.slice(1)));
    for (const name of texts.flatMap((text) => [text, `${text}-mini`, `new-${text}`]).slice(0, 900)) {
      const first = rows.find(({ match }) => matches(match, name));
      const listed = first !== undefined && 'price' in first ? first : undefined;
      expect([list, name, listingOf(list, name)]).toEqual([list, name, listed]);
    }
  }
});

test('every listed price is one that a snapshot may hold', async () => {
  const { default: table } = await import('../money/price-table.json', { with: { type: 'json' } });
  for (const [id, { rows }] of Object.entries(table.lists)) {
    for (const { match, price } of rows) {
      expect(SnapshotEntry.shape.price.safeParse(price).success, `${id} ${match}`).toBe(true);
    }
  }
});
