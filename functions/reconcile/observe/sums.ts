// What has each member of an instance spent in its current window?
import type { Nano } from '#core/money.ts';
import type { Books } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { budgetOf, windowOf } from '../plan/budget.ts';
import { aliasOf, type Member, sumKey } from '../world.ts';

/** One question to the books for all of them, by `sumKey`. */
export async function readSums(
  books: Books,
  members: Iterable<Member>,
  claims: ReadonlyMap<string, Claim>,
  now: Millis,
): Promise<Map<string, Nano>> {
  const windows = [...members].flatMap((member) => {
    const claim = claims.get(aliasOf(member).key);
    const budget = budgetOf(member);
    if (claim === undefined || claim.holder.uid !== member.metadata.uid || budget === undefined) return [];
    return [{ scopeId: claim.scopeId, window: windowOf(budget, claim.anchor, now) }];
  });
  const sums = windows.length === 0 ? [] : await books.sums(windows);
  return new Map(sums.map(({ scopeId, window, spent }) => [sumKey(scopeId, window), spent]));
}
