// What has each member of an instance spent in its current window?
import type { Nano } from '#core/money.ts';
import type { Books } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { Claim } from '#core/ports/registry.ts';
import { budgetOf, windowOf } from '../plan/budget.ts';
import { modelScopesOf } from '../plan/model-budgets.ts';
import { aliasOf, type Member, sumKey } from '../world.ts';

/** One question to the books for all of them, by `sumKey`. */
export async function readSums(
  books: Books,
  members: Iterable<Member>,
  claims: ReadonlyMap<string, Claim>,
  { now, hash }: { readonly now: Millis; readonly hash: Hash },
): Promise<Map<string, Nano>> {
  const windows = [...members].flatMap((member) => {
    const claim = claims.get(aliasOf(member).key);
    if (claim === undefined || claim.holder.uid !== member.metadata.uid) return [];
    const budget = budgetOf(member);
    const own = budget === undefined ? [] : [{ scopeId: claim.scopeId, budget }];
    return [...own, ...modelScopesOf(member, claim, hash)].map((scope) => ({
      scopeId: scope.scopeId,
      window: windowOf(scope.budget, claim.anchor, now),
    }));
  });
  const sums = windows.length === 0 ? [] : await books.sums(windows);
  const spent = sums.filter((sum) => sum.spent !== 0n);
  return new Map(spent.map(({ scopeId, window, spent: amount }) => [sumKey(scopeId, window), amount]));
}
