// Core kinds: what is served before any CRD is applied.

import { defaultColumns } from '../codec/table.ts';
import { customResourceDefinition } from '../kinds/custom-resource-definition.ts';
import { configMap, secret } from '../kinds/data.ts';
import { event } from '../kinds/event.ts';
import { namespace } from '../kinds/namespace.ts';
import { webhookConfiguration } from '../kinds/webhook-configuration.ts';
import type { KubeObject } from '../object.ts';
import { apiVersionOf, type Resource, type Strategy, type Subresource } from '../resource.ts';
import { coreSchema } from '../schema/core-schemas.ts';
import { prune } from '../schema/prune.ts';
import { coreColumns } from './core-columns.ts';

const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

type Row = {
  readonly group: string;
  /** Default: v1. */
  readonly version?: string;
  readonly plural: string;
  readonly kind: string;
  readonly scope?: 'Cluster';
  readonly short?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly Subresource[];
  readonly verbs?: readonly string[];
  readonly generations?: true;
  readonly nameRule?: Resource['nameRule'];
  /** A kind without one is judged by its schema alone. */
  readonly strategy?: Strategy;
};

const apiExtension = { scope: 'Cluster', categories: ['api-extensions'], generations: true } as const;
const workload = { categories: ['all'], generations: true } as const;
const rbac = { group: 'rbac.authorization.k8s.io', nameRule: 'path' } as const;

const rows: readonly Row[] = [
  { group: '', plural: 'configmaps', kind: 'ConfigMap', short: ['cm'], strategy: configMap },
  { group: '', plural: 'events', kind: 'Event', short: ['ev'], strategy: event },
  {
    group: '',
    plural: 'namespaces',
    kind: 'Namespace',
    scope: 'Cluster',
    short: ['ns'],
    subresources: ['finalize', 'status'],
    verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
    nameRule: 'label',
    strategy: namespace,
  },
  // Nothing runs here, so no Pod can be made: there are none, and they can be listed.
  { group: '', plural: 'pods', kind: 'Pod', short: ['po'], categories: ['all'], verbs: ['get', 'list', 'watch'] },
  { group: '', plural: 'secrets', kind: 'Secret', strategy: secret },
  { group: '', plural: 'serviceaccounts', kind: 'ServiceAccount', short: ['sa'] },
  {
    group: '',
    plural: 'services',
    kind: 'Service',
    short: ['svc'],
    categories: ['all'],
    subresources: ['status'],
    nameRule: 'label',
  },
  {
    group: 'apps',
    plural: 'deployments',
    kind: 'Deployment',
    short: ['deploy'],
    subresources: ['status'],
    ...workload,
  },
  {
    group: 'autoscaling',
    version: 'v2',
    plural: 'horizontalpodautoscalers',
    kind: 'HorizontalPodAutoscaler',
    short: ['hpa'],
    subresources: ['status'],
    categories: ['all'],
  },
  { group: 'batch', plural: 'cronjobs', kind: 'CronJob', short: ['cj'], subresources: ['status'], ...workload },
  { group: 'batch', plural: 'jobs', kind: 'Job', subresources: ['status'], ...workload },
  { group: 'coordination.k8s.io', plural: 'leases', kind: 'Lease' },
  {
    group: 'policy',
    plural: 'poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    short: ['pdb'],
    subresources: ['status'],
    generations: true,
  },
  { ...rbac, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding', scope: 'Cluster' },
  { ...rbac, plural: 'clusterroles', kind: 'ClusterRole', scope: 'Cluster' },
  { ...rbac, plural: 'rolebindings', kind: 'RoleBinding' },
  { ...rbac, plural: 'roles', kind: 'Role' },
  {
    group: 'apiextensions.k8s.io',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    strategy: customResourceDefinition,
    short: ['crd', 'crds'],
    subresources: ['status'],
    ...apiExtension,
  },
  {
    group: 'admissionregistration.k8s.io',
    plural: 'mutatingwebhookconfigurations',
    kind: 'MutatingWebhookConfiguration',
    strategy: webhookConfiguration,
    ...apiExtension,
  },
  {
    group: 'admissionregistration.k8s.io',
    plural: 'validatingwebhookconfigurations',
    kind: 'ValidatingWebhookConfiguration',
    strategy: webhookConfiguration,
    ...apiExtension,
  },
];

/** The built-in kinds, each in one version, with the real server's names, short names and categories. */
export const coreResources: readonly Resource[] = rows.map(toResource);

function toResource(row: Row): Resource {
  const {
    group,
    version = 'v1',
    plural,
    kind,
    scope,
    short = [],
    categories = [],
    subresources = [],
    verbs = allVerbs,
    strategy = {},
  } = row;
  const schema = coreSchema(apiVersionOf({ group, version }), kind) ?? {};
  return {
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    namespaced: scope !== 'Cluster',
    shortNames: short,
    categories,
    verbs,
    subresources,
    storedAs: `${group}/${plural}`,
    custom: false,
    generations: row.generations ?? false,
    unconditionalUpdate: kind !== 'CustomResourceDefinition' && kind !== 'Lease',
    nameRule: row.nameRule ?? 'subdomain',
    columns: coreColumns[plural] ?? defaultColumns,
    strategy,
    schema,
    prune: (object) => prune(schema, object),
    applyDefaults: (object) => strategy.applyDefaults?.(object as KubeObject) ?? object, // decoded by its schema
  };
}
