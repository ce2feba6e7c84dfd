// Findings about one budget: its time zone, its alignment, a maximum of zero or below the spend.

import { parseMoney } from '#core/money/money.ts';
import { isTimeZone } from '#core/money/time-zone.ts';
import type { Finding } from '#core/rules/finding.ts';

/** The fields of a budget. `path`: the path of the object in the spec that has these fields. */
export interface BudgetFields {
  readonly path: string;
  readonly maxBudget?: string | undefined;
  readonly budgetDuration?: string | undefined;
  readonly budgetWindow?: 'Rolling' | 'Calendar' | undefined;
  readonly budgetTimeZone?: string | undefined;
}

export function unknownTimeZone({ path, budgetTimeZone: value = 'UTC' }: BudgetFields): Finding[] {
  if (isTimeZone(value)) return [];
  const message = 'must be a time zone of the IANA database; write its name, e.g. "Europe/Berlin"';
  return [
    { rule: 'TimeZoneUnknown', path: `${path}.budgetTimeZone`, type: 'Not found', value, message, effect: 'refuse' },
  ];
}

export function unusedTimeZone({ path, budgetTimeZone: value, budgetWindow }: BudgetFields): Finding[] {
  if (value === undefined || budgetWindow === 'Calendar') return [];
  const message = 'has no effect on Rolling windows; set budgetWindow: Calendar, or remove it';
  return [{ rule: 'TimeZoneUnused', path: `${path}.budgetTimeZone`, value, message, effect: 'warn' }];
}

export function unusedCalendar({ path, maxBudget, budgetDuration, budgetWindow: value }: BudgetFields): Finding[] {
  const missing = Object.entries({ maxBudget, budgetDuration }).filter(([, field]) => field === undefined);
  if (value !== 'Calendar' || missing.length === 0) return [];
  const message = `has no effect without ${missing.map(([name]) => name).join(' and ')}; add ${missing.length === 1 ? 'it' : 'them'}, or remove budgetWindow`;
  return [{ rule: 'CalendarUnused', path: `${path}.budgetWindow`, value, message, effect: 'warn' }];
}

export function zeroBudgetAt(path: string, value: string | undefined): Finding[] {
  if (value === undefined || parseMoney(value) !== 0n) return [];
  const message =
    'a budget of zero is spent from the start, so every request that is charged to it is refused, even one for a free model; raise it';
  return [{ rule: 'ZeroBudget', path: `${path}.maxBudget`, value, message, effect: 'warn' }];
}

/**
 * Whether an edit lowers the budget below the spend of the current window. False if the edit also changes the window,
 * because the spend of the new window is not known.
 */
export function isBelowSpend(
  budget: BudgetFields,
  old: Omit<BudgetFields, 'path'> | undefined,
  spend: string,
): boolean {
  const { maxBudget = '' } = budget;
  const [max, spent] = [parseMoney(maxBudget), parseMoney(spend)];
  const isSameWindow = (['budgetDuration', 'budgetWindow', 'budgetTimeZone'] as const).every(
    (field) => old?.[field] === budget[field],
  );
  return old?.maxBudget !== maxBudget && isSameWindow && max !== undefined && spent !== undefined && max < spent;
}
