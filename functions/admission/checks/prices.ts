// Has every entry a price? Without one its model is closed to keys with a budget, and every key has one.
import { entryPrice, namesPrice } from '#core/entry-price.ts';
import type { Check } from '../check.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';

export const prices: Check = ({ object }) =>
  toView(InstanceView, object.spec).models.flatMap((entry, index) => {
    const params = entry.gatewayParams ?? {};
    if (entryPrice(params).price !== undefined) return [];
    const path = `spec.models[${index}].gatewayParams`;
    return [{ rule: 'ModelNotPriced', path, value: undefined, message: adviceFor(entry), effect: 'warn' as const }];
  });

function adviceFor({ modelName = '', gatewayParams: params = {} }: ModelEntryView): string {
  const absent = (['inputCostPerMillionTokens', 'outputCostPerMillionTokens'] as const).filter(
    (name) => params[name] === undefined,
  );
  const why = namesPrice(params)
    ? 'half a price is none'
    : `no price is listed for ${JSON.stringify(params.model ?? '')}`;
  return `a key with a budget cannot use ${JSON.stringify(modelName)} without a price; set ${absent.join(' and ')} ("0" is free): ${why}`;
}
