// `status.namespaces` of an instance: what namespaces with a budget have spent, and the events about it.

import { toTimestamp } from '#core/conditions/conditions.ts';
import { formatMoney } from '#core/money/money.ts';
import type { Millis } from '#core/ports/money.ts';
import type { GatewayInstance, GatewayInstanceStatus } from '#crds/kinds/gateway-instance.ts';
import type { Action } from '../action.ts';
import { type Spend, spentIn } from '../key/budget.ts';
import type { InstanceView } from '../world.ts';
import { planThresholdEvent } from './budget-events.ts';

/** The maximum number of namespaces in a status: all readers of the instance read them all. */
const MAX_NAMESPACES = 500;

export interface NamespaceSpend extends Spend {
  readonly name: string;
  readonly policy: string;
  readonly limit: bigint;
}

/** Namespaces with a `perNamespace` budget in force, at most 500: the largest shares of a budget, by name. */
export function namespaceSpends(
  { claims, sums }: Pick<InstanceView, 'claims' | 'sums'>,
  now: Millis,
): ReadonlyArray<NamespaceSpend> {
  const all = [...claims.values()].flatMap(({ kind, alias: name, scopeId, anchor, policy }): NamespaceSpend[] => {
    const budget = policy?.budget;
    if (kind !== 'namespace' || budget === undefined) return [];
    const { window, spent } = spentIn(sums, { scopeId, budget, anchor }, now);
    const limit = BigInt(budget.limit);
    const isExceeded = spent >= limit;
    return [{ name, policy: policy?.policyName ?? '', limit, spent, resetsAt: window.end, isExceeded }];
  });
  const shown = all.length <= MAX_NAMESPACES ? all : all.sort(byShare).slice(0, MAX_NAMESPACES);
  return shown.sort(byName);
}

const byName = (one: NamespaceSpend, other: NamespaceSpend): number => (one.name < other.name ? -1 : 1);

/** The largest share first. With `+ 1`, a budget of zero has the share of a spent one. */
function byShare(one: NamespaceSpend, other: NamespaceSpend): number {
  const [left, right] = [(one.spent + 1n) * (other.limit + 1n), (other.spent + 1n) * (one.limit + 1n)];
  return left === right ? byName(one, other) : left > right ? -1 : 1;
}

/** Undefined: no namespace has a budget. */
export const toNamespaceStatus = (spends: ReadonlyArray<NamespaceSpend>): GatewayInstanceStatus['namespaces'] =>
  spends.length === 0
    ? undefined
    : spends.map(({ name, policy, limit, spent, resetsAt }) => ({
        name,
        policy,
        maxBudget: formatMoney(limit),
        currentSpend: formatMoney(spent),
        budgetResetDate: toTimestamp(resetsAt),
      }));

/**
 * `BudgetUsed` for each namespace in the status. The events are of the instance, because a namespace has no object of
 * the operator. No condition reports that the budget of a namespace is spent, so a spent budget gets the event for 95
 * per cent, too (`isExceeded: false`).
 */
export function planNamespaceEvents(object: GatewayInstance, spends: ReadonlyArray<NamespaceSpend>): Action[] {
  const before = new Map(object.status?.namespaces?.map((one) => [one.name, one]));
  return spends.flatMap((spend) =>
    planThresholdEvent(object, {
      subject: `namespace "${spend.name}"`,
      id: `namespace/${spend.name}/`,
      spend: { ...spend, isExceeded: false },
      reset: toTimestamp(spend.resetsAt),
      maxBudget: formatMoney(spend.limit),
      before: before.get(spend.name),
    }),
  );
}
