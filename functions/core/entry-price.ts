// What does a model entry cost? What its manifest says, and only where that says nothing, what its provider lists.
import { listingOf } from './price-list.ts';
import { providerOf } from './providers.ts';
import type { SnapshotEntry } from './snapshot.ts';

/** The members of `gatewayParams` that this takes: also as admission meets them, broken or absent. */
export interface PricedParams {
  readonly model?: string | undefined;
  readonly customLLMProvider?: string | undefined;
  readonly inputCostPerMillionTokens?: string | undefined;
  readonly outputCostPerMillionTokens?: string | undefined;
  readonly cachedInputCostPerMillionTokens?: string | undefined;
  readonly cacheWriteCostPerMillionTokens?: string | undefined;
  readonly maxInputTokens?: number | undefined;
}

/** The provider ends at the first slash, the rest may hold more of them; `customLLMProvider` overrides it. */
export function modelOf({ model = '', customLLMProvider }: PricedParams): { provider: string; model: string } {
  const slash = model.indexOf('/');
  return { provider: customLLMProvider ?? model.slice(0, Math.max(0, slash)), model: model.slice(slash + 1) };
}

/** A manifest that names any price is taken at its word: nothing is filled in from elsewhere, and half a price is none. */
export function entryPrice(params: PricedParams): Pick<SnapshotEntry, 'price' | 'maxInputTokens'> {
  const listed = listing(params);
  const maxInputTokens = params.maxInputTokens ?? listed?.window;
  const price = namesPrice(params) ? manifestPrice(params) : listed?.price;
  return {
    ...(price === undefined ? {} : { price }),
    ...(maxInputTokens === undefined ? {} : { maxInputTokens }),
  };
}

export function namesPrice(params: PricedParams): boolean {
  return [
    params.inputCostPerMillionTokens,
    params.outputCostPerMillionTokens,
    params.cachedInputCostPerMillionTokens,
    params.cacheWriteCostPerMillionTokens,
  ].some((price) => price !== undefined);
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
