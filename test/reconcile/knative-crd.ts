// What of Knative is needed where nothing of it runs? The kind that reconcile applies, and nothing that judges it.
import { PARTS } from '../../functions/reconcile/workload/object-parts.ts';

const { group, version, plural, kind } = PARTS.KnativeService;

export const KNATIVE_SERVICES = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};
