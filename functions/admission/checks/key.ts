// Checks of a VirtualKey: its own fields, and its Secret.

import { parseMoney } from '#core/money/money.ts';
import { secretConflict } from '#core/rules/conflicts.ts';
import type { Finding } from '#core/rules/finding.ts';
import { templateHarmless as findHarmful } from '#core/rules/secret-template.ts';
import type { VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import { secondsOf } from '#crds/validation/units.ts';
import type { Check } from '../check.ts';
import type { KeyFacts, ScopeObjectFacts } from '../facts/scope-object.ts';

export const keySecretFree: Check<VirtualKeySpec, ScopeObjectFacts> = ({ metadata: { name = '' }, spec, facts }) =>
  facts.occupiedName === undefined ? [] : [secretConflict(name, spec.secretTemplate?.name, facts.occupiedName)];

export const templateHarmless: Check<VirtualKeySpec, KeyFacts> = ({ spec, facts }) =>
  findHarmful(spec.secretTemplate, facts.secretPrefixes);

/**
 * Finds budgets that look like limits but limit nothing: two budgets of equally long windows, and a budget of a shorter
 * window that is larger than `maxBudget`.
 */
export const windowBudgets: Check<VirtualKeySpec, ScopeObjectFacts> = ({ spec }) => {
  const { maxBudget, budgetDuration, budgets = [] } = spec;
  const lengths = [budgetDuration, ...budgets.map((one) => one.budgetDuration)].map(secondsOf);
  const [main = 0, ...windowLengths] = lengths;
  return budgets.flatMap((budget, index): Finding[] => {
    const length = windowLengths[index] ?? 0;
    const path = `spec.budgets[${index}]`;
    const twin = lengths.indexOf(length);
    if (twin <= index) {
      const other = twin === 0 ? 'spec.budgetDuration' : `spec.budgets[${twin - 1}].budgetDuration`;
      const message = `has the same length as ${other}, so only the smaller of the two budgets limits; remove one of them`;
      return [
        {
          rule: 'WindowRepeated',
          path: `${path}.budgetDuration`,
          value: budget.budgetDuration,
          message,
          effect: 'warn',
        },
      ];
    }
    if (length > main || (parseMoney(budget.maxBudget) ?? 0n) <= (parseMoney(maxBudget) ?? 0n)) return [];
    const message = `is more than maxBudget, which is for a longer window, so the smaller budget applies; write less than ${JSON.stringify(maxBudget)}, or a longer budgetDuration`;
    return [
      { rule: 'WindowBudgetTooLarge', path: `${path}.maxBudget`, value: budget.maxBudget, message, effect: 'warn' },
    ];
  });
};
