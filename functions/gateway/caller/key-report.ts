// The report of `GET key`: alias, budgets and dates of the caller's own key (DESIGN 10, GET key).
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { toFurtherScope } from '#core/keys/further-budgets.ts';
import { toScopeName } from '#core/keys/scope-name.ts';
import { formatMoney } from '#core/money/money.ts';
import type { ScopePolicy, ScopeSpend } from '#core/ports/policy.ts';
import { modelsWithin } from '#core/rules/key-policies.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { Caller } from './authenticate.ts';

export function createKeyReport({ ledger }: Pick<GatewayDependencies, 'ledger'>) {
  return async function keyReport(caller: Caller): Promise<Result<object, Failure>> {
    const { key } = caller;
    const policies = [...caller.scopes, ...(key.furtherBudgets ?? []).map(toFurtherScope(key))];
    const spend = await ledger.spend(policies, caller.databaseTime);
    if (!spend.ok) {
      const why = spend.failure.reason === 'unavailable' ? spend.failure.why : spend.failure.reason;
      return err({ code: 'ledger_unavailable', why });
    }
    const budgets = policies.map((policy, index) => ({ policy, budget: toBudget(policy, spend.value[index]) }));
    const spent = (name: string) =>
      budgets.some(({ policy, budget }) => policy.kind === 'model' && policy.name === name && budget.remaining === '0');
    const namespace = policies.find(({ kind }) => kind === 'namespace');
    const models = modelsWithin(key.models, namespace);
    return ok({
      alias: key.name,
      models: models ?? key.models,
      ...(budgets[0]?.budget ?? toBudget(key, undefined)),
      expiryDate: key.expiresAt === undefined ? null : new Date(key.expiresAt).toISOString(),
      // Expired and blocked keys were refused before.
      isActive:
        models !== undefined &&
        budgets.every(({ policy, budget }) => policy.kind === 'model' || budget.remaining !== '0') &&
        (models.length === 0 || !models.every(spent)),
      scopes: budgets.map(({ policy, budget }) => {
        const { kind, name, keyPolicy } = toScopeName(policy, policies);
        return { kind, name, alias: policy.alias, keyPolicy, ...budget };
      }),
    });
  };
}

/**
 * Money is in decimal dollars, dates are in RFC 3339. Null: no limit, no window or no end. The spend of a user or team
 * without a budget is null too, because the ledger does not sum it.
 */
function toBudget({ budget }: ScopePolicy, spend: ScopeSpend | undefined) {
  const spent = spend?.spent ?? 0n;
  const limit = budget === undefined ? undefined : BigInt(budget.limit);
  const left = limit === undefined || limit <= spent ? 0n : limit - spent;
  return {
    maxBudget: limit === undefined ? null : formatMoney(limit),
    budgetDuration: budget?.duration ?? null,
    currentSpend: limit === undefined ? null : formatMoney(spent),
    remaining: limit === undefined ? null : formatMoney(left),
    budgetResetDate: spend === undefined || limit === undefined ? null : new Date(spend.window.end).toISOString(),
  };
}
