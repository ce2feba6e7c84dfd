// Core kinds: those served before any CRD is applied.

import { defaultColumns } from '../codec/table.ts';
import { accessReview, rulesReview, userReview } from '../kinds/access-review.ts';
import { customResourceDefinition } from '../kinds/custom-resource-definition.ts';
import { configMap, secret } from '../kinds/data.ts';
import { event } from '../kinds/event.ts';
import { namespace } from '../kinds/namespace.ts';
import { webhookConfiguration } from '../kinds/webhook-configuration.ts';
import { apiVersionOf, type Resource, type Strategy } from '../resource.ts';
import { coreSchema } from '../schema/core-schemas.ts';
import { coreColumns } from './core-columns.ts';

const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

const defaults = {
  group: '',
  version: 'v1',
  namespaced: true,
  shortNames: [],
  categories: [],
  subresources: [],
  verbs: allVerbs,
  generations: false,
  nameRule: 'subdomain',
} satisfies Partial<Resource>;

/** A kind with its differences from the defaults. A kind without a strategy is validated by its schema alone. */
type Row = Pick<Resource, 'plural' | 'kind'> & Partial<Resource>;

const listed = { categories: ['all'], subresources: ['status'] } as const;
const workload = { ...listed, generations: true } as const;
const apiExtension = { namespaced: false, categories: ['api-extensions'], generations: true } as const;
const webhooks = {
  group: 'admissionregistration.k8s.io',
  strategy: webhookConfiguration,
  ...apiExtension,
} as const;
const review = { verbs: ['create'], namespaced: false } as const;
const authentication = { group: 'authentication.k8s.io', ...review } as const;
const authorization = { group: 'authorization.k8s.io', ...review } as const;
const rbac = { group: 'rbac.authorization.k8s.io', nameRule: 'path' } as const;

const rows: readonly Row[] = [
  { plural: 'configmaps', kind: 'ConfigMap', shortNames: ['cm'], strategy: configMap },
  { plural: 'events', kind: 'Event', shortNames: ['ev'], strategy: event },
  {
    plural: 'namespaces',
    kind: 'Namespace',
    namespaced: false,
    shortNames: ['ns'],
    subresources: ['finalize', 'status'],
    verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
    nameRule: 'label',
    strategy: namespace,
  },
  // Nothing runs here, so no Pod can be made: there are none, and they can be listed.
  { plural: 'pods', kind: 'Pod', shortNames: ['po'], categories: ['all'], verbs: ['get', 'list', 'watch'] },
  { plural: 'secrets', kind: 'Secret', strategy: secret },
  { plural: 'serviceaccounts', kind: 'ServiceAccount', shortNames: ['sa'] },
  { plural: 'services', kind: 'Service', shortNames: ['svc'], nameRule: 'label', ...listed },
  { group: 'apps', plural: 'deployments', kind: 'Deployment', shortNames: ['deploy'], ...workload },
  {
    group: 'autoscaling',
    version: 'v2',
    plural: 'horizontalpodautoscalers',
    kind: 'HorizontalPodAutoscaler',
    shortNames: ['hpa'],
    ...listed,
  },
  { group: 'batch', plural: 'cronjobs', kind: 'CronJob', shortNames: ['cj'], ...workload },
  { group: 'batch', plural: 'jobs', kind: 'Job', ...workload },
  { group: 'coordination.k8s.io', plural: 'leases', kind: 'Lease' },
  {
    ...workload,
    group: 'policy',
    plural: 'poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    shortNames: ['pdb'],
    categories: [],
  },
  { ...rbac, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding', namespaced: false },
  { ...rbac, plural: 'clusterroles', kind: 'ClusterRole', namespaced: false },
  { ...rbac, plural: 'rolebindings', kind: 'RoleBinding' },
  { ...rbac, plural: 'roles', kind: 'Role' },
  {
    group: 'apiextensions.k8s.io',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    strategy: customResourceDefinition,
    shortNames: ['crd', 'crds'],
    subresources: ['status'],
    ...apiExtension,
  },
  { ...webhooks, plural: 'mutatingwebhookconfigurations', kind: 'MutatingWebhookConfiguration' },
  { ...webhooks, plural: 'validatingwebhookconfigurations', kind: 'ValidatingWebhookConfiguration' },
  { ...authorization, plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview', strategy: accessReview },
  { ...authorization, plural: 'subjectaccessreviews', kind: 'SubjectAccessReview', strategy: accessReview },
  { ...authorization, plural: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview', strategy: rulesReview },
  { ...authentication, plural: 'selfsubjectreviews', kind: 'SelfSubjectReview', strategy: userReview },
];

/** The built-in kinds, each in one version, with the real server's names, short names and categories. */
export const coreResources: readonly Resource[] = rows.map(toResource);

function toResource(row: Row): Resource {
  const whole = { ...defaults, ...row };
  const { group, plural, kind } = whole;
  const strategy: Strategy = row.strategy ?? {};
  return {
    ...whole,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    strategy,
    storedAs: `${group}/${plural}`,
    custom: false,
    unconditionalUpdate: kind !== 'CustomResourceDefinition' && kind !== 'Lease',
    columns: coreColumns[plural] ?? defaultColumns,
    schema: coreSchema(apiVersionOf(whole), kind) ?? {},
  };
}
