// How does a test spend what a key, user or team has? By one entry, as a gateway books it.
import { createHash } from 'node:crypto';
import { parseMoney } from '#core/money/money.ts';
import { budgetedScopes, perKeyScope, windowOf } from '../../functions/reconcile/key/budget.ts';
import type { Database } from './databases.ts';

export interface SpendingKey {
  readonly instanceUid: string;
  readonly alias: string;
  readonly dollars: string;
  /** Its budget pays too, where there is one. */
  readonly model: string | undefined;
  /** Milliseconds. */
  readonly now: number;
}

/** Books a charge to the scope with this alias, in its current window. */
export async function book(
  database: Database,
  { instanceUid, alias, dollars, model, now }: SpendingKey,
): Promise<void> {
  const claims = await database.claims(instanceUid);
  const claim = claims.find((one) => one.alias === alias);
  if (claim?.policy?.budget === undefined) throw new Error(`${alias} has no budget to spend from`);
  const charged = budgetedScopes(claim).filter((scope) => scope.model === undefined || scope.model === model);
  const namespace = claims.find((one) => one.kind === 'namespace' && one.alias === claim.holder.namespace);
  const ofKey = claim.kind === 'key' ? perKeyScope(claim, namespace, sha256) : undefined;
  const scopeWindows = [...charged, ...(ofKey === undefined ? [] : [ofKey])].map(({ scopeId, budget }) => ({
    scopeId,
    window: windowOf(budget, claim.anchor, now),
  }));
  await database.book(instanceUid, [
    {
      id: uuidv7(now),
      kind: 'settled',
      scopeWindows,
      cost: parseMoney(dollars) ?? 0n,
      tokens: { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 },
      model: 'small',
      identifier: 'small',
      estimated: false,
      settledAt: now,
    },
  ]);
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let entries = 0;
function uuidv7(time: number): string {
  entries += 1;
  const hex = time.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${entries.toString(16).padStart(12, '0')}`;
}
