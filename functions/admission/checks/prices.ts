// Has every entry a price? Without one its model is closed to keys with a budget, and every key has one.
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';

export const prices: Check = async ({ object }) =>
  toView(InstanceView, object.spec).models.flatMap(({ modelName = '', gatewayParams }, index) => {
    const { inputCostPerMillionTokens: input, outputCostPerMillionTokens: output } = gatewayParams ?? {};
    if (input !== undefined && output !== undefined) return [];
    const absent = input !== undefined ? 'outputCostPerMillionTokens' : 'inputCostPerMillionTokens';
    const and = input === undefined && output === undefined ? ' and outputCostPerMillionTokens' : '';
    const message = `a key with a budget cannot use ${JSON.stringify(modelName)} without a price; set ${absent}${and} ("0" is free)`;
    const path = `spec.models[${index}].gatewayParams`;
    return [{ rule: 'ModelNotPriced', path, value: undefined, message, effect: 'warn' as const }];
  });
