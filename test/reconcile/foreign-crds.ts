// The CRDs of Knative and Gateway API where nothing of them runs: the kinds that the reconciler applies, without a
// schema.
import type { Resource } from '#core/ports/cluster.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';

const crdOf = ({ group, version, plural, kind }: Resource, annotations = {}) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}`, annotations },
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
});

export const KNATIVE_SERVICES = crdOf(WORKLOAD_OBJECTS.KnativeService);
/** Groups below `k8s.io` need the annotation. */
export const HTTP_ROUTES = crdOf(WORKLOAD_OBJECTS.HTTPRoute, {
  'api-approved.kubernetes.io': 'unapproved, for a test',
});
