// The scopes of a key's further budgets: derived from the key's own, so that no claim is needed (decision 0014).
import type { Hash } from '../ports/platform.ts';
import type { FurtherBudget, KeyPolicy, ScopeId, ScopePolicy } from '../ports/policy.ts';

/**
 * The scope id is always the same for the same key and model, or the same key and length of window: a UUID of version 8
 * (RFC 9562) from a hash.
 * The scope lives as long as the key's claim: rotation, adoption, and a budget that is removed from the spec and put
 * back, all keep the spend.
 */
export function ownScopeId(
  hash: Hash,
  key: ScopeId,
  { model, duration }: Pick<FurtherBudget, 'model' | 'duration'>,
): ScopeId {
  const hex = hash(model === undefined ? `window scope\n${key}\n${duration}` : `model scope\n${key}\n${model}`);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`];
  return [...parts, hex.slice(20, 32)].join('-');
}

/** The scope of a further budget of this key. */
export const toFurtherScope =
  ({ name, anchor, budget: own }: KeyPolicy) =>
  ({ scopeId, model, ...budget }: FurtherBudget): ScopePolicy => ({
    scopeId,
    ...(model === undefined ? { kind: 'key', name } : { kind: 'model', name: model, of: name }),
    blocked: false,
    models: [],
    budget: { ...budget, alignment: own?.alignment ?? 'Rolling' },
    anchor,
  });
