// May this namespace use this instance? (`spec.allowedNamespaces`.)
import type { GatewayInstanceSpec } from '#crds/gateway-instance.ts';

type Allowed = GatewayInstanceSpec['allowedNamespaces'];
type Requirement = NonNullable<NonNullable<Allowed['selector']>['matchExpressions']>[number];
type Labels = Readonly<Record<string, string>>;

/** `labels` are the namespace's; they decide with `from: Selector` only. A selector that is absent selects nothing. */
export function admits(
  instance: { readonly namespace: string; readonly allowed: Allowed },
  namespace: string,
  labels: Labels,
): boolean {
  const { from, selector } = instance.allowed;
  if (from === 'All') return true;
  if (from === 'Same') return namespace === instance.namespace;
  if (selector === undefined) return false;
  const exact = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return exact && (selector.matchExpressions ?? []).every((requirement) => meets(requirement, labels));
}

function meets({ key, operator, values = [] }: Requirement, labels: Labels): boolean {
  const value = labels[key];
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}
