import { calcPrice, findProvider, type MatchLogic, type ModelPrice } from '@pydantic/genai-prices';
import { describe, expect, test } from 'vitest';
import { PRICE_LISTS } from '#core/models/providers.ts';
import { costOf, toPrice } from '#core/money/price.ts';
import { listingOf } from '#core/money/price-list.ts';
import table from '#core/money/price-table.json' with { type: 'json' };
import type { Usage } from '#core/money/usage.ts';
import { pricesOf, toPriceTable } from '../price-table.ts';

const NOON = new Date(`${table.asOf}T12:00:00Z`);

const USAGES: ReadonlyArray<Usage> = [
  { input: 1000, output: 100, cachedInput: 0, cacheWrite: 0 },
  { input: 5000, output: 1, cachedInput: 4000, cacheWrite: 0 },
  { input: 5000, output: 70, cachedInput: 1000, cacheWrite: 3000 },
  { input: 5000, output: 70, cachedInput: 1000, cacheWrite: 3000, cacheWriteLong: 1000 },
  { input: 200_000, output: 100, cachedInput: 0, cacheWrite: 0 },
  { input: 200_001, output: 100, cachedInput: 7, cacheWrite: 0 },
  { input: 900_000, output: 9000, cachedInput: 300_000, cacheWrite: 0 },
  { input: 3000, output: 900, cachedInput: 0, cacheWrite: 0, inputAudio: 2000, outputAudio: 500 },
  { input: 3000, output: 900, cachedInput: 0, cacheWrite: 0, reasoning: 800 },
];

/** In the package's words. */
const toTheirs = (usage: Usage) => ({
  input_tokens: usage.input,
  output_tokens: usage.output,
  cache_read_tokens: usage.cachedInput,
  cache_write_tokens: usage.cacheWrite,
  cache_write_1h_tokens: usage.cacheWriteLong ?? 0,
  input_audio_tokens: usage.inputAudio ?? 0,
  output_audio_tokens: usage.outputAudio ?? 0,
  output_reasoning_tokens: usage.reasoning ?? 0,
});

function wordsOf(match: MatchLogic): ReadonlyArray<string> {
  if ('or' in match) return match.or.flatMap(wordsOf);
  if ('and' in match) return match.and.flatMap(wordsOf);
  return Object.values(match);
}

/** Names that the list tells apart, and for a share of them some that only begin or end alike. */
function namesOf(list: string): ReadonlyArray<string> {
  const models = findProvider({ providerId: list })?.models ?? [];
  const names = models.flatMap((model) => [model.id, ...wordsOf(model.match)]);
  const like = (name: string) => [`${name}-preview`, `x-${name}`, name.toUpperCase()];
  return [...new Set(names.flatMap((name, index) => (index % 4 === 0 ? [name, ...like(name)] : [name])))];
}

describe.each(PRICE_LISTS)('the list of %s', (list) => {
  test('finds the models that the package finds, and charges what it charges', () => {
    let compared = 0;
    const wrong: string[] = [];
    for (const name of namesOf(list)) {
      const price = toPrice(listingOf(list, name)?.price);
      const found = calcPrice(toTheirs(USAGES[0] ?? { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 }), name, {
        providerId: list,
        timestamp: NOON,
      });
      if (price === undefined) {
        const isLeftOut = found === null || !isMeterable(found.model_price) || isUntrue(name, found.model_price);
        if (!isLeftOut) wrong.push(`${name} has a price only there`);
        continue;
      }
      if (found !== null && isUntrue(name, found.model_price))
        wrong.push(`${name} has a price that leaves out its main cost`);
      if (found === null) {
        wrong.push(`${name} has a price only here`);
        continue;
      }
      // Prices that change with the hour are the highest of the day here.
      if (Array.isArray(found.model.prices) && found.model_price !== pricesOf(found.model)) continue;
      const isDerived = price.tiers[0].rates.cacheWriteLong > price.tiers[0].rates.cacheWrite;
      const isLongKnown = found.model_price.cache_write_1h_mtok !== undefined || !isDerived;
      for (const usage of USAGES.filter(({ cacheWriteLong }) => cacheWriteLong === undefined || isLongKnown)) {
        const theirs = calcPrice(toTheirs(usage), name, { providerId: list, timestamp: NOON });
        const nano = (theirs?.total_price ?? Number.NaN) * 1e9;
        compared += 1;
        if (!(Math.abs(Number(costOf(usage, price)) - nano) <= 1 + nano * 1e-9)) {
          wrong.push(`${name} ${JSON.stringify(usage)}: ${costOf(usage, price)} here, ${nano} there`);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(compared).toBeGreaterThan(USAGES.length * 3);
  });
});

/** Tokens of kinds that usage tells apart, on both sides; searches are tools that a request must ask for. */
const METERED =
  /^((input|output)(_audio|_image)?|output_reasoning|cache_(audio_|image_)?read|cache_write(_1h)?)_mtok$|^(requests|(web|storage)_searches)_kcount$/;

function isMeterable(prices: ModelPrice): boolean {
  const names = Object.keys(prices).filter((name) => prices[name] !== undefined);
  return names.includes('input_mtok') && names.every((name) => METERED.test(name));
}

/** Words in names of models, and the prices there without which theirs leave out what they cost most. */
const NEEDED: ReadonlyArray<[RegExp, ReadonlyArray<string>]> = [
  [/audio/, ['input_audio_mtok', 'output_audio_mtok']],
  [/voxtral/, ['input_audio_mtok']],
  [/(?<!gpt-)image/, ['output_image_mtok']],
  [/-search|sonar|-online|^openai\/.*deep-research/, ['requests_kcount']],
];

function isUntrue(name: string, prices: ModelPrice): boolean {
  return NEEDED.some(
    ([word, needed]) => word.test(name.toLowerCase()) && needed.some((one) => prices[one] === undefined),
  );
}

test.each([
  [
    'openai',
    [
      'gpt-4o-audio-preview',
      'gpt-4o-mini-audio-preview-2024-12-17',
      'gpt-4o-search-preview',
      'gpt-4o-mini-search-preview',
      'gpt-5-image',
    ],
  ],
  ['azure', ['gpt-4o-audio-preview', 'gpt-4o-mini-search-preview']],
  [
    'openrouter',
    ['openai/gpt-4o-audio-preview', 'openai/gpt-audio', 'openai/gpt-4o-search-preview', 'openai/o3-deep-research'],
  ],
  ['openrouter', ['perplexity/sonar', 'perplexity/sonar-deep-research', 'google/gemini-2.5-flash-image']],
  ['perplexity', ['sonar-pro-search', 'sonar-deep-research', 'llama-3.1-sonar-small-128k-online']],
  ['mistral', ['voxtral-small-latest']],
])('models of %s that search unasked, speak or draw have no price that leaves this out: %j', (list, names) => {
  expect(names.map((name) => listingOf(list, name))).toEqual(names.map(() => undefined));
});

test.each([
  ['openai', ['gpt-4o', 'gpt-4o-mini', 'gpt-audio', 'gpt-4o-realtime-preview', 'gpt-image-1', 'o3-deep-research']],
  ['openrouter', ['openai/gpt-4o', 'nousresearch/hermes-4-70b']],
  ['perplexity', ['sonar', 'sonar-pro', 'sonar-reasoning-pro']],
  ['google', ['gemini-2.5-flash', 'gemini-2.5-flash-image']],
])('other models of %s keep theirs: %j', (list, names) => {
  expect(names.filter((name) => listingOf(list, name) === undefined)).toEqual([]);
});

test('an hour in the cache of Claude costs twice the input on clouds too, which the package does not tell', () => {
  for (const [list, model] of [
    ['aws', 'eu.anthropic.claude-opus-4-1-20250805-v1:0'],
    ['google', 'claude-3-opus@20240229'],
  ]) {
    expect(listingOf(list ?? '', model ?? '')?.price).toMatchObject({
      input: '15',
      cacheWrite: '18.75',
      cacheWriteLong: '30',
    });
  }
});

test('the table that is committed is that of the package that is installed', () => {
  expect(toPriceTable()).toContain(table.source);
});
