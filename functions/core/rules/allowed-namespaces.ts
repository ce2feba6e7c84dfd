// Namespaces that an instance allows: its `allowedNamespaces`.
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { type NamespaceLabels, selects } from './label-selector.ts';

type AllowedNamespaces = GatewayInstanceSpec['allowedNamespaces'];

/** Whether the namespace is allowed. `All` by default; `Selector` without a selector allows none. */
export function allowsNamespace(
  allowed: AllowedNamespaces | undefined,
  instanceNamespace: string,
  asking: NamespaceLabels,
): boolean {
  if (allowed === undefined || allowed.from === 'All') return true;
  if (allowed.from === 'Same') return asking.name === instanceNamespace;
  return allowed.selector !== undefined && selects(allowed.selector, asking);
}

/** Whether the answer depends on the labels of the asking namespace, so that they must be read. */
export const needsLabels = (allowed: AllowedNamespaces | undefined): boolean => allowed?.from === 'Selector';
