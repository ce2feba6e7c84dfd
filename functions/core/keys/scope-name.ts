// The names of scopes, as replies to clients have them.
import type { ScopePolicy } from '../ports/policy.ts';
import { namespaceOf } from './per-key-budget.ts';

/** `keyPolicy`: the key policy that charges this scope, or whose budget, limits and models the scope has. */
export type ScopeName = Pick<ScopePolicy, 'kind' | 'name' | 'of' | 'countedFrom'> & {
  readonly keyPolicy?: string | undefined;
};

/**
 * The name of a scope of these `scopes` of a key. After the namespace follows the Team of its key policy; the Teams of
 * the key are before the namespace.
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
