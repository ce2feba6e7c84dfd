// Does a budget for a single model bound anything? Not where the key may not use the model anyway.
import type { Finding } from '#core/finding.ts';
import { parseMoney } from '#core/money.ts';
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';

export const modelBudgets: Check = ({ object }) => {
  const { models, modelMaxBudget } = toView(KeyView, object.spec);
  return Object.entries(modelMaxBudget).flatMap(([model, { maxBudget }]): Finding[] => {
    const path = `spec.modelMaxBudget[${JSON.stringify(model)}]`;
    if (models.length > 0 && !models.includes(model)) {
      const message =
        'the key may not use this model, so nothing is ever spent from this; add it to spec.models, or remove it here';
      return [{ rule: 'ModelNotAllowed', path, value: undefined, message, effect: 'warn' }];
    }
    if (maxBudget === undefined || parseMoney(maxBudget) !== 0n) return [];
    const message = 'a budget of nothing is used up from the start: this key never uses the model; raise it to let it';
    return [{ rule: 'ZeroBudget', path: `${path}.maxBudget`, value: maxBudget, message, effect: 'warn' }];
  });
};
