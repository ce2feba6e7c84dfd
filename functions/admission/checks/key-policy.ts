// Checks of a VirtualKey, or of a User with `autoCreateKey`, against the key policy of its namespace.

import { formatMoney, parseMoney } from '#core/money/money.ts';
import type { Finding } from '#core/rules/finding.ts';
import { describePolicy, type PolicySubject, policyViolations } from '#core/rules/key-policies.ts';
import type { UserSpec } from '#crds/kinds/user.ts';
import type { VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import { secondsOf } from '#crds/validation/units.ts';
import type { Check, CheckInput } from '../check.ts';
import type { ScopeObjectFacts } from '../facts/scope-object.ts';

type KeyCheck = Check<VirtualKeySpec, ScopeObjectFacts>;
type UserCheck = Check<UserSpec, ScopeObjectFacts>;

export const keyMeetsPolicy: KeyCheck = (input) =>
  violations(input, { kind: 'VirtualKey', hasUser: input.spec.userRef !== undefined });

export const userMeetsPolicy: UserCheck = (input) =>
  input.spec.autoCreateKey ? violations(input, { kind: 'User', hasUser: true }) : [];

export const keyBudgetAbovePolicy: KeyCheck = (input) => budgetsAbove(input);

export const userBudgetAbovePolicy: UserCheck = (input) => (input.spec.autoCreateKey ? budgetsAbove(input) : []);

type Input = CheckInput<
  Pick<VirtualKeySpec | UserSpec, 'connectionRef' | 'models' | 'maxBudget' | 'budgetDuration'>,
  ScopeObjectFacts
>;

/** Models that the instance does not serve are left out: another check reports them. */
function violations({ spec, facts }: Input, subject: Pick<PolicySubject, 'kind' | 'hasUser'>): Finding[] {
  const { instance, hasTeam } = facts;
  const applied = appliedPolicy({ spec, facts });
  if (applied === undefined) return [];
  return policyViolations({ ...subject, models: spec.models, hasTeam }, applied).filter(
    ({ value }) => typeof value !== 'string' || instance?.served.has(value) === true,
  );
}

function appliedPolicy({ spec, facts: { instance } }: Pick<Input, 'spec' | 'facts'>) {
  const { policy, blockedMessage } = instance ?? {};
  return policy && { policy, instance: spec.connectionRef.instanceRef, blockedMessage };
}

/**
 * A budget without an effect, because the policy has a smaller one for windows of the same length. If it has two, the
 * finding names the smaller one.
 */
function budgetsAbove(input: Input): Finding[] {
  const { maxBudget: value, budgetDuration } = input.spec;
  const applied = appliedPolicy(input);
  if (applied === undefined || value === undefined || budgetDuration === undefined) return [];
  const { perKey, perNamespace } = applied.policy;
  const limits = [
    { part: 'perKey', whose: 'each VirtualKey', fields: perKey },
    { part: 'perNamespace', whose: 'all VirtualKeys of this namespace together', fields: perNamespace },
  ];
  const own = parseMoney(value) ?? 0n;
  const above = limits.flatMap(({ fields, ...limit }) => {
    const max = parseMoney(fields?.maxBudget ?? '');
    const isSameLength = secondsOf(fields?.budgetDuration ?? '') === secondsOf(budgetDuration);
    return max === undefined || !isSameLength || own <= max ? [] : [{ ...limit, fields, max }];
  });
  const smallest = above.toSorted((a, b) => (a.max < b.max ? -1 : a.max > b.max ? 1 : 0)).slice(0, 1);
  return smallest.map(({ part, whose, fields, max }): Finding => {
    const message = `${describePolicy(applied)} allows ${whose} ${formatMoney(max)} dollars per ${fields?.budgetDuration} (${part}.maxBudget), so the smaller budget applies; write at most ${JSON.stringify(formatMoney(max))}`;
    return { rule: 'BudgetAbovePolicy', path: 'spec.maxBudget', value, message, effect: 'warn' };
  });
}
