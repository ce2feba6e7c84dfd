// The names of scopes, as replies to clients have them.
import type { NamespacePolicy, ScopePolicy } from '../ports/policy.ts';

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
  const namespaceAt = scopes.findIndex((one) => one.kind === 'namespace');
  const namespace = scopes[namespaceAt] as NamespacePolicy | undefined;
  const scopeAt = scopes.findIndex(({ scopeId }) => scopeId === scope.scopeId);
  const isOfPolicy = kind === 'namespace' || countedFrom !== undefined || (kind === 'team' && scopeAt > namespaceAt);
  const keyPolicy = isOfPolicy ? namespace?.policyName : undefined;
  return {
    kind,
    name,
    ...(of === undefined ? {} : { of }),
    ...(countedFrom === undefined ? {} : { countedFrom }),
    ...(keyPolicy === undefined ? {} : { keyPolicy }),
  };
}
