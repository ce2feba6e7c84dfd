// Holds by the scopes that they are charged to.
import type { ScopeId } from '#core/ports/policy.ts';
import type { HoldNote } from '#core/ports/store.ts';

export interface HoldIndex {
  add(id: string, note: HoldNote): void;
  remove(id: string, note: HoldNote): void;
  of(scopeId: ScopeId): Iterable<string>;
}

export function createHoldIndex(): HoldIndex {
  const byScope = new Map<ScopeId, Set<string>>();
  return {
    add: (id, { charges }) => {
      for (const { scopeId } of charges) {
        const ids = byScope.get(scopeId);
        if (ids === undefined) byScope.set(scopeId, new Set([id]));
        else ids.add(id);
      }
    },
    remove: (id, { charges }) => {
      for (const { scopeId } of charges) {
        const ids = byScope.get(scopeId);
        ids?.delete(id);
        if (ids?.size === 0) byScope.delete(scopeId);
      }
    },
    of: (scopeId) => byScope.get(scopeId) ?? [],
  };
}
