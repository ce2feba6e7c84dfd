// The objects that run an instance's gateway and lead to it: their names, and what all of them have.
import { gatewayName, knativeServiceName } from '#core/keys/object-names.ts';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { OWNED_LABELS, VERSION_ANNOTATION } from '#crds/names/group.ts';
import { controllerOf } from '#crds/names/object-meta.ts';

export const WORKLOAD_OBJECTS = {
  Deployment: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' },
  Service: { group: '', version: 'v1', plural: 'services', kind: 'Service' },
  PodDisruptionBudget: { group: 'policy', version: 'v1', plural: 'poddisruptionbudgets', kind: 'PodDisruptionBudget' },
  HorizontalPodAutoscaler: {
    group: 'autoscaling',
    version: 'v2',
    plural: 'horizontalpodautoscalers',
    kind: 'HorizontalPodAutoscaler',
  },
  HTTPRoute: { group: 'gateway.networking.k8s.io', version: 'v1', plural: 'httproutes', kind: 'HTTPRoute' },
  Ingress: { group: 'networking.k8s.io', version: 'v1', plural: 'ingresses', kind: 'Ingress' },
  KnativeService: { group: 'serving.knative.dev', version: 'v1', plural: 'services', kind: 'Service' },
} as const satisfies Record<string, Resource>;

export type WorkloadObjectKind = keyof typeof WORKLOAD_OBJECTS;
export type WorkloadType = NonNullable<NonNullable<GatewayInstance['status']>['workloadType']>;

/** The workload object that runs the gateway is first: it is created first and removed last. */
export const WORKLOAD_OBJECTS_OF = {
  Deployment: ['Deployment', 'Service', 'PodDisruptionBudget', 'HorizontalPodAutoscaler'],
  Knative: ['KnativeService'],
} as const satisfies Partial<Record<WorkloadType, readonly WorkloadObjectKind[]>>;

/**
 * The workload objects through which clients outside the cluster reach a Deployment's Service. An instance has at most
 * one.
 */
export const ROUTES = ['HTTPRoute', 'Ingress'] as const satisfies readonly WorkloadObjectKind[];
export type RouteName = (typeof ROUTES)[number];

export const isRoute = (objectKind: WorkloadObjectKind): objectKind is RouteName =>
  objectKind === 'HTTPRoute' || objectKind === 'Ingress';

export const workloadObjectName = (objectKind: WorkloadObjectKind, instance: string): string =>
  objectKind === 'KnativeService' ? knativeServiceName(instance) : gatewayName(instance);

/** The name of a workload object for people. */
export const workloadObjectTitle = (objectKind: WorkloadObjectKind, instance: string): string =>
  `${objectKind === 'KnativeService' ? 'Knative Service' : objectKind} "${workloadObjectName(objectKind, instance)}"`;

/** Selects the Pods of one instance. */
export const selectorOf = (instance: string) => ({
  'app.kubernetes.io/name': 'gateway',
  'app.kubernetes.io/instance': instance,
});

/** Keeps the Service off Knative's public ingress. A DomainMapping makes it public. */
const CLUSTER_LOCAL = { 'networking.knative.dev/visibility': 'cluster-local' };

/**
 * A workload object with what every one has: our labels, and an owner reference to the instance, with which it is
 * deleted.
 */
export function toWorkloadObject(
  objectKind: WorkloadObjectKind,
  {
    instance,
    version,
    annotations: further,
  }: {
    readonly instance: GatewayInstance;
    readonly version: string;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  },
  spec: object,
): KubeObject {
  const { namespace, name } = instance.metadata;
  const { group, version: apiVersion, kind } = WORKLOAD_OBJECTS[objectKind];
  const labels = { ...selectorOf(name), ...OWNED_LABELS, ...(objectKind === 'KnativeService' ? CLUSTER_LOCAL : {}) };
  const annotations = { ...further, [VERSION_ANNOTATION]: version };
  const ownerReferences = [controllerOf(instance)];
  const metadata = { name: workloadObjectName(objectKind, name), namespace, labels, annotations, ownerReferences };
  return { apiVersion: group === '' ? apiVersion : `${group}/${apiVersion}`, kind, metadata, spec };
}

/**
 * The version of the operator that wrote a workload object, if it is later than ours: `1.10.0` is later than `1.9.3`. A
 * text of another form is never later.
 */
export function laterVersion(
  { metadata }: { readonly metadata: Pick<KubeObject['metadata'], 'annotations'> },
  ours: string,
): string | undefined {
  const theirs = metadata.annotations?.[VERSION_ANNOTATION] ?? '';
  const isLater = /^\d+(\.\d+)*$/.test(theirs) && theirs.localeCompare(ours, 'en', { numeric: true }) > 0;
  return isLater ? theirs : undefined;
}
