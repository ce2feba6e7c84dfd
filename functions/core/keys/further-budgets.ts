// The scopes of a key's further budgets. Their ids are derived from the key's scope id, so they need no claim (decision
// 0014).
import type { Hash } from '../ports/platform.ts';
import type { FurtherBudget, KeyPolicy, ScopeId, ScopePolicy } from '../ports/policy.ts';

/**
 * The id of the scope, from key and model, or from key and length of window. So the scope keeps its spend as long as the
 * key's claim exists: through rotation and adoption, and if the budget is removed from the spec and added again.
 */
export function furtherScopeId(
  hash: Hash,
  key: ScopeId,
  { model, duration }: Pick<FurtherBudget, 'model' | 'duration'>,
): ScopeId {
  return derivedScopeId(
    hash,
    model === undefined ? `window scope\n${key}\n${duration}` : `model scope\n${key}\n${model}`,
  );
}

/** A UUID of version 8 (RFC 9562) from the hash of this text: the same for the same text. */
export function derivedScopeId(hash: Hash, text: string): ScopeId {
  const hex = hash(text);
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
