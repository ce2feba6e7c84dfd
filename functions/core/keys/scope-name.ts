// The names of scopes in replies to clients.
import type { ScopePolicy } from '../ports/policy.ts';
import { namespaceOf } from './per-key-budget.ts';

/** `keyPolicy`: the name of the key policy from which the scope comes, or whose budget, limits and models it has. */
export type ScopeName = Pick<ScopePolicy, 'kind' | 'name' | 'of' | 'countedFrom'> & {
  readonly keyPolicy?: string | undefined;
};

/**
 * The name of a scope, which is one of `scopes`, the charged scopes of a key. In these, the key's own Teams are before
 * the namespace, and the Team of the key policy is after it.
 */
export function toScopeName(scope: ScopePolicy, scopes: ReadonlyArray<ScopePolicy>): ScopeName {
  const { kind, name, of, countedFrom } = scope;
  const [namespaceAt, scopeAt] = [
    scopes.findIndex((one) => one.kind === 'namespace'),
    scopes.findIndex(({ scopeId }) => scopeId === scope.scopeId),
  ];
  const isOfPolicy = kind === 'namespace' || countedFrom !== undefined || (kind === 'team' && scopeAt > namespaceAt);
  const keyPolicy = isOfPolicy ? namespaceOf(scopes)?.policyName : undefined;
  return {
    kind,
    name,
    ...(of === undefined ? {} : { of }),
    ...(countedFrom === undefined ? {} : { countedFrom }),
    ...(keyPolicy === undefined ? {} : { keyPolicy }),
  };
}
