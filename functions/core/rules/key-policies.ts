// The key policy of a namespace: the first of an instance's `keyPolicies` that selects the namespace.
import type { KeyPolicy } from '#crds/kinds/key-policy.ts';
import { type NamespaceLabels, selects } from './label-selector.ts';

type NamespaceSelection = Pick<KeyPolicy, 'namespaceSelector'>;

/** The policy that applies to the keys of the namespace; a policy without a selector applies to every namespace. */
export const policyOfNamespace = <P extends NamespaceSelection>(
  policies: ReadonlyArray<P> | undefined,
  namespace: NamespaceLabels,
): P | undefined =>
  policies?.find(({ namespaceSelector }) => namespaceSelector === undefined || selects(namespaceSelector, namespace));

/** Whether the policy depends on the labels of the namespace, so that they must be read: the first one may select. */
export function policyNeedsLabels([first]: ReadonlyArray<NamespaceSelection> = []): boolean {
  const { matchLabels = {}, matchExpressions = [] } = first?.namespaceSelector ?? {};
  return Object.keys(matchLabels).length > 0 || matchExpressions.length > 0;
}

/**
 * The models that a key may use: those of its list that are in the policy's list too. Empty means all models in either
 * list; undefined: nothing is left, so the key may use none.
 */
export function modelsWithin(
  own: ReadonlyArray<string>,
  policy: Pick<KeyPolicy, 'models'> | undefined,
): ReadonlyArray<string> | undefined {
  const allowed = policy?.models ?? [];
  if (allowed.length === 0) return own;
  if (own.length === 0) return allowed;
  const models = new Set(allowed);
  const left = own.filter((model) => models.has(model));
  return left.length === 0 ? undefined : left;
}
