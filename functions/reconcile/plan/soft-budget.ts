// Has a key spent more than it was expected to? It is reported, and goes on working.
import { type Judgement, toTimestamp } from '#core/conditions.ts';
import { parseMoney } from '#core/money.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { Action } from '../action.ts';
import type { Spend } from './spend.ts';
import { tell } from './tell.ts';

const TYPE = 'SoftBudgetReached';

/** The condition of a key that has a `softBudget`; True from the spend that reaches it until its window ends. */
export function judgeSoftBudget({ spec }: VirtualKey, spend: Spend | undefined): Judgement | undefined {
  const { softBudget, maxBudget } = spec;
  const limit = softBudget === undefined ? undefined : parseMoney(softBudget);
  if (limit === undefined || spend === undefined) return undefined;
  const window = `in the window that ends at ${toTimestamp(spend.resetsAt)}`;
  if (spend.spent < limit) {
    const message = `it has spent less than its softBudget of ${softBudget} dollars ${window}`;
    return { type: TYPE, status: 'False', reason: 'BelowSoftBudget', message };
  }
  const message = `it has spent its softBudget of ${softBudget} dollars ${window}: it goes on working until it has spent ${maxBudget}`;
  return { type: TYPE, status: 'True', reason: TYPE, message };
}

/** Once in a window; after an edit of `softBudget` once more. */
export function planSoftBudgetEvent(key: VirtualKey, judged: Judgement | undefined): Action[] {
  if (judged?.status !== 'True') return [];
  const before = key.status?.conditions?.find(({ type }) => type === TYPE);
  if (before?.status === 'True' && before.message === judged.message) return [];
  const { message } = judged;
  return [tell(key, { type: 'Warning', reason: TYPE, message, once: `${TYPE}/${message}` })];
}
