// What is special about each core kind beyond its schema?
import type { Strategy } from '../resources/resource.ts';
import { configMap } from './config-map.ts';
import { customResourceDefinition } from './custom-resource-definition.ts';
import { event, eventsView } from './event.ts';
import { namespace } from './namespace.ts';
import { secret } from './secret.ts';
import { service } from './service.ts';
import { webhookConfiguration } from './webhook-configuration.ts';
import { cronJob, deployment, job, lease, podDisruptionBudget, roleBinding } from './workloads.ts';

/** By `group/Kind`. A kind that is not here is judged by its schema alone. */
export const coreStrategies: Readonly<Record<string, Strategy>> = {
  '/ConfigMap': configMap,
  '/Event': event,
  '/Namespace': namespace,
  '/Secret': secret,
  '/Service': service,
  'events.k8s.io/Event': eventsView,
  'apps/Deployment': deployment,
  'batch/CronJob': cronJob,
  'coordination.k8s.io/Lease': lease,
  'policy/PodDisruptionBudget': podDisruptionBudget,
  'batch/Job': job,
  'rbac.authorization.k8s.io/RoleBinding': roleBinding,
  'rbac.authorization.k8s.io/ClusterRoleBinding': roleBinding,
  'apiextensions.k8s.io/CustomResourceDefinition': customResourceDefinition,
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': webhookConfiguration,
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': webhookConfiguration,
};
