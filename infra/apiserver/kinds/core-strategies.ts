// What is special about each core kind beyond its schema?
import type { Strategy } from '../resource.ts';
import { configMap } from './config-map.ts';
import { customResourceDefinition } from './custom-resource-definition.ts';
import { event } from './event.ts';
import { namespace } from './namespace.ts';
import { secret } from './secret.ts';
import { webhookConfiguration } from './webhook-configuration.ts';

/** By `group/Kind`. A kind that is not here is judged by its schema alone. */
export const coreStrategies: Readonly<Record<string, Strategy>> = {
  '/ConfigMap': configMap,
  '/Event': event,
  '/Namespace': namespace,
  '/Secret': secret,
  'apiextensions.k8s.io/CustomResourceDefinition': customResourceDefinition,
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': webhookConfiguration,
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': webhookConfiguration,
};
