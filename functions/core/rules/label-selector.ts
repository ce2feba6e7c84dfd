// Whether the labels of a namespace meet a selector, as everywhere in Kubernetes.
import type { LabelSelector } from '#crds/kinds/label-selector.ts';
import { ownMember } from '../json/json.ts';

export interface NamespaceLabels {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

/** Whether all labels and requirements of the selector are met; an empty selector selects every namespace. */
export function selects({ matchLabels, matchExpressions }: LabelSelector, namespace: NamespaceLabels): boolean {
  return (
    Object.entries(matchLabels ?? {}).every(([label, value]) => labelOf(namespace, label) === value) &&
    (matchExpressions ?? []).every((requirement) => meets(requirement, namespace))
  );
}

/** An absent label meets `NotIn`. */
function meets({ key, operator, values = [] }: Requirement, namespace: NamespaceLabels): boolean {
  const value = labelOf(namespace, key);
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
