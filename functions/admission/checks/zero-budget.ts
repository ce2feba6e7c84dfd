// Is the budget nothing at all? Legal, and means never, for free models neither (DESIGN 10, Money).
import { parseMoney } from '#core/money.ts';
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';

const WHO: Readonly<Record<string, string>> = {
  VirtualKey: 'this key never works',
  User: 'no key of this user ever works',
  Team: 'no key of this team ever works',
};

export const zeroBudget: Check = ({ kind, object }) => {
  const { maxBudget } = toView(KeyView, object.spec);
  if (maxBudget === undefined || parseMoney(maxBudget) !== 0n) return [];
  const message = `a budget of nothing is used up from the start: ${WHO[kind.kind]}, for free models neither; raise it to let it work`;
  return [{ rule: 'ZeroBudget', path: 'spec.maxBudget', value: maxBudget, message, effect: 'warn' }];
};
