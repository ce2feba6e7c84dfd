// Which webhooks has somebody configured, in which order are they called, and which of them does an attempt concern?

import type { KubeObject } from '../object.ts';
import { type LabelSelector, toLabelSelector } from '../request/label-selector.ts';
import { keyOf, type Resource } from '../resource.ts';
import { type CelProgram, compileCel } from '../schema/cel.ts';
import type { JsonObject } from '../schema/json.ts';
import type { Store } from '../store/store.ts';
import type { AdmissionAttributes } from './attributes.ts';

export type Rule = {
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
  readonly scope?: string;
};

/** One webhook as it is configured; validated and defaulted when it was stored. */
export type Webhook = {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  readonly sideEffects: string;
  readonly timeoutSeconds: number;
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
  readonly clientConfig: {
    readonly url?: string;
    readonly caBundle?: string;
    readonly service?: {
      readonly namespace: string;
      readonly name: string;
      readonly path?: string;
      readonly port?: number;
    };
  };
  readonly namespaceSelector: LabelSelector;
  readonly objectSelector: LabelSelector;
  readonly conditions: ReadonlyArray<{ readonly name: string; readonly test: CelProgram }>;
};

export type WebhookKind = 'mutating' | 'validating';

/** The hooks of a kind in calling order: configurations by name, then as listed. Compiled once per stored configuration. */
export function createWebhooks(store: Pick<Store, 'list'>): (kind: WebhookKind) => readonly Webhook[] {
  const compiled = new WeakMap<KubeObject, readonly Webhook[]>();
  return (kind) =>
    store.list(`admissionregistration.k8s.io/${kind}webhookconfigurations`).flatMap((configuration) => {
      const hooks = compiled.get(configuration) ?? toHooks(configuration);
      compiled.set(configuration, hooks);
      return hooks;
    });
}

function toHooks({ webhooks }: KubeObject): Webhook[] {
  return (Array.isArray(webhooks) ? (webhooks as JsonObject[]) : []).map((hook) => ({
    ...(hook as Pick<
      Webhook,
      'name' | 'failurePolicy' | 'sideEffects' | 'timeoutSeconds' | 'reinvocationPolicy' | 'clientConfig'
    >),
    rules: (hook.rules ?? []) as readonly Rule[],
    namespaceSelector: toLabelSelector(hook.namespaceSelector),
    objectSelector: toLabelSelector(hook.objectSelector),
    conditions: ((hook.matchConditions ?? []) as ReadonlyArray<{ name: string; expression: string }>).map(
      ({ name, expression }) => ({ name, test: compileCel(expression) }),
    ),
  }));
}

/** Whether rules and selectors concern the attempt. Webhook configurations themselves never pass through webhooks. */
export function concerns(hook: Webhook, attempt: AdmissionAttributes, store: Pick<Store, 'get'>): boolean {
  const { resource } = attempt.request;
  if (resource.group === 'admissionregistration.k8s.io') return false;
  return (
    hook.rules.some((rule) => ruleFits(rule, attempt)) &&
    namespaceFits(hook, attempt, store) &&
    [attempt.object, attempt.old].some(
      (object) => object !== undefined && hook.objectSelector(object.metadata.labels ?? {}),
    )
  );
}

function ruleFits(
  { operations, apiGroups, apiVersions, resources, scope }: Rule,
  attempt: AdmissionAttributes,
): boolean {
  const { resource, subresource } = attempt.request;
  const scoped = scope === undefined || scope === '*' || scope === (resource.namespaced ? 'Namespaced' : 'Cluster');
  return (
    scoped &&
    listed(operations, attempt.operation) &&
    listed(apiGroups, resource.group) &&
    listed(apiVersions, resource.version) &&
    (resources ?? []).some((pattern) => resourceFits(pattern, resource, subresource))
  );
}

function listed(values: readonly string[] | undefined, wanted: string): boolean {
  return values !== undefined && (values.includes('*') || values.includes(wanted));
}

// A pattern is `plural`, `plural/subresource`, or either part as a star; without a slash it means objects, not subresources.
function resourceFits(pattern: string, { plural }: Resource, subresource: string | undefined): boolean {
  const [wanted, wantedSub] = pattern.split('/');
  if (wanted !== '*' && wanted !== plural) return false;
  if (wantedSub === undefined) return subresource === undefined;
  return wantedSub === '*' || wantedSub === subresource;
}

function namespaceFits(
  hook: Webhook,
  { request, object, old }: AdmissionAttributes,
  store: Pick<Store, 'get'>,
): boolean {
  const { resource, namespace } = request;
  if (resource.group === '' && resource.plural === 'namespaces') {
    return hook.namespaceSelector((object ?? old)?.metadata.labels ?? {});
  }
  if (!resource.namespaced) return true;
  const found = store.get(
    keyOf({ ...resource, namespaced: false, storedAs: '/namespaces' }, undefined, namespace ?? ''),
  );
  return hook.namespaceSelector(found?.metadata.labels ?? {});
}
