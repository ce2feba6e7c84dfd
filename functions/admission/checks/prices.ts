// Has every entry a price? Without one its model is closed to keys with a budget, and every key has one.
import { namesPrice, type PricedParams } from '#core/entry-model.ts';
import type { Finding } from '#core/finding.ts';
import type { Check } from '../check.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';

export const prices: Check = ({ object }) => {
  const { models } = toView(InstanceView, object.spec);
  return models.every(({ gatewayParams = {} }) => isPriced(gatewayParams)) ? [] : judge(models);
};

const isPriced = (params: PricedParams): boolean =>
  params.inputCostPerMillionTokens !== undefined && params.outputCostPerMillionTokens !== undefined;

/** What providers list is a large table, loaded with the first entry that leaves its price to it. */
async function judge(models: ReadonlyArray<ModelEntryView>): Promise<Finding[]> {
  const { entryPrice } = await import('#core/price-list.ts');
  return models.flatMap((entry, index) => {
    if (entryPrice(entry.gatewayParams ?? {}).price !== undefined) return [];
    const path = `spec.models[${index}].gatewayParams`;
    return [{ rule: 'ModelNotPriced', path, value: undefined, message: adviceFor(entry), effect: 'warn' as const }];
  });
}

function adviceFor({ modelName = '', gatewayParams: params = {} }: ModelEntryView): string {
  const absent = (['inputCostPerMillionTokens', 'outputCostPerMillionTokens'] as const).filter(
    (name) => params[name] === undefined,
  );
  const why = namesPrice(params)
    ? 'half a price is none'
    : `no price is listed for ${JSON.stringify(params.model ?? '')}`;
  return `a key with a budget cannot use ${JSON.stringify(modelName)} without a price; set ${absent.join(' and ')} ("0" is free): ${why}`;
}
