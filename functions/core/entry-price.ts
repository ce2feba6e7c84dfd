// What does a model entry cost? What its manifest says, and only where that says nothing, what its provider lists.
import { modelOf, namesPrice, type PricedParams } from './entry-model.ts';
import { listingOf } from './price-list.ts';
import { providerOf } from './providers.ts';
import type { SnapshotEntry } from './snapshot.ts';

/** A manifest that names any price is taken at its word: nothing is filled in from elsewhere, and half a price is none. */
export function entryPrice(params: PricedParams): Pick<SnapshotEntry, 'price' | 'maxInputTokens'> {
  const listed = namesPrice(params) && params.maxInputTokens !== undefined ? undefined : listing(params);
  const maxInputTokens = params.maxInputTokens ?? listed?.window;
  const price = namesPrice(params) ? manifestPrice(params) : listed?.price;
  return {
    ...(price === undefined ? {} : { price }),
    ...(maxInputTokens === undefined ? {} : { maxInputTokens }),
  };
}

function manifestPrice(params: PricedParams): SnapshotEntry['price'] {
  const { inputCostPerMillionTokens: input, outputCostPerMillionTokens: output } = params;
  const { cachedInputCostPerMillionTokens: cachedInput, cacheWriteCostPerMillionTokens: cacheWrite } = params;
  if (input === undefined || output === undefined) return undefined;
  return {
    input,
    output,
    ...(cachedInput === undefined ? {} : { cachedInput }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
  };
}

function listing(params: PricedParams): ReturnType<typeof listingOf> {
  const { provider, model } = modelOf(params);
  const { prices } = providerOf(provider);
  return prices === undefined ? undefined : listingOf(prices, model);
}
