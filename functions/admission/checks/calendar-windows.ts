// Do the key's Calendar windows, or those of its models, begin where nobody would look for them?
import { calendarWindow } from '#core/rules/calendar-window.ts';
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';

export const calendarWindows: Check = ({ object }) => {
  const { budgetWindow, budgetDuration, modelMaxBudget } = toView(KeyView, object.spec);
  if (budgetWindow !== 'Calendar') return [];
  const models = Object.entries(modelMaxBudget).flatMap(([model, one]) =>
    calendarWindow(`spec.modelMaxBudget[${JSON.stringify(model)}].budgetDuration`, one.budgetDuration ?? ''),
  );
  return [...calendarWindow('spec.budgetDuration', budgetDuration ?? ''), ...models];
};
