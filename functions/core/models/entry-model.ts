// The provider and model of a model entry, and whether its manifest names a price: all that needs no price table, which
// is large.
import type { ModelEntry } from '#crds/kinds/model-entry.ts';

/** `gatewayParams`, perhaps before their validation: members may be absent or malformed. */
export type PricedParams = Partial<ModelEntry['gatewayParams']>;

/** The provider ends at the first slash, the rest may contain more slashes; `customLLMProvider` overrides it. */
export function modelOf({ model = '', customLLMProvider }: PricedParams): { provider: string; model: string } {
  const slash = model.indexOf('/');
  return { provider: customLLMProvider ?? model.slice(0, Math.max(0, slash)), model: model.slice(slash + 1) };
}

export function namesPrice(params: PricedParams): boolean {
  return [
    params.inputCostPerMillionTokens,
    params.outputCostPerMillionTokens,
    params.cachedInputCostPerMillionTokens,
    params.cacheWriteCostPerMillionTokens,
    params.cacheWriteLongCostPerMillionTokens,
  ].some((price) => price !== undefined);
}
