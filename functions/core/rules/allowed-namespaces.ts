// Namespaces that an instance allows: its `allowedNamespaces`, read as Kubernetes reads selectors.
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { ownMember } from '../json/json.ts';

export interface NamespaceLabels {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

type AllowedNamespaces = GatewayInstanceSpec['allowedNamespaces'];
type Requirement = NonNullable<NonNullable<AllowedNamespaces['selector']>['matchExpressions']>[number];

/** Whether the namespace is allowed. `All` by default; `Selector` without a selector allows none. */
export function allowsNamespace(
  allowed: AllowedNamespaces | undefined,
  instanceNamespace: string,
  asking: NamespaceLabels,
): boolean {
  if (allowed === undefined || allowed.from === 'All') return true;
  if (allowed.from === 'Same') return asking.name === instanceNamespace;
  const { selector } = allowed;
  if (selector === undefined) return false;
  const labels = Object.entries(selector.matchLabels ?? {});
  return (
    labels.every(([label, value]) => labelOf(asking, label) === value) &&
    (selector.matchExpressions ?? []).every((requirement) => meets(requirement, asking))
  );
}

/** Whether the answer depends on the labels of the asking namespace, so that they must be read. */
export const needsLabels = (allowed: AllowedNamespaces | undefined): boolean => allowed?.from === 'Selector';

/** Whether the labels meet a requirement, as everywhere in Kubernetes: `NotIn` holds for a label that is absent. */
function meets({ key, operator, values = [] }: Requirement, asking: NamespaceLabels): boolean {
  const value = labelOf(asking, key);
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

const labelOf = ({ labels }: NamespaceLabels, label: string): string | undefined => ownMember(labels, label);
