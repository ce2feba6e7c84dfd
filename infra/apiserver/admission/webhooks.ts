// Webhooks as they are configured: the order in which they are called, and the writes that each of them sees.
import type { KubeObject } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { type LabelSelector, toLabelSelector } from '../request/selection.ts';
import type { Resource } from '../resource.ts';
import { type CelProgram, compileCel } from '../schema/cel.ts';
import { type JsonObject, listAt } from '../schema/json.ts';
import type { Store } from '../store/store.ts';

export type AdmissionAttributes = {
  readonly request: ApiRequest;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  /** Absent on DELETE. */
  readonly object: KubeObject | undefined;
  /** Absent on CREATE. */
  readonly old: KubeObject | undefined;
  /** DeleteOptions as they were sent, on DELETE. */
  readonly options?: object;
};

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

/**
 * The webhooks of a kind in calling order: configurations by name, then as listed. Compiled once per stored
 * configuration.
 */
export function createWebhooks(store: Pick<Store, 'list'>): (kind: WebhookKind) => readonly Webhook[] {
  const compiled = new WeakMap<KubeObject, readonly Webhook[]>();
  return (kind) =>
    store.list(`admissionregistration.k8s.io/${kind}webhookconfigurations`).flatMap((configuration) => {
      const webhooks = compiled.get(configuration) ?? toWebhooks(configuration);
      compiled.set(configuration, webhooks);
      return webhooks;
    });
}

function toWebhooks(configuration: KubeObject): Webhook[] {
  return (listAt(configuration, 'webhooks') as JsonObject[]).map((webhook) => {
    const conditions = listAt(webhook, 'matchConditions') as ReadonlyArray<{ name: string; expression: string }>;
    return {
      ...(webhook as Omit<Webhook, 'namespaceSelector' | 'objectSelector' | 'conditions'>),
      rules: listAt(webhook, 'rules') as readonly Rule[],
      namespaceSelector: toLabelSelector(webhook.namespaceSelector),
      objectSelector: toLabelSelector(webhook.objectSelector),
      conditions: conditions.map(({ name, expression }) => ({ name, test: compileCel(expression, 'condition') })),
    };
  });
}

/**
 * Whether rules and selectors concern the attributes. Webhook configurations themselves never pass through webhooks.
 */
export function matches(webhook: Webhook, attributes: AdmissionAttributes, store: Pick<Store, 'get'>): boolean {
  const { resource } = attributes.request;
  if (resource.group === 'admissionregistration.k8s.io') return false;
  return (
    webhook.rules.some((rule) => ruleFits(rule, attributes)) &&
    namespaceFits(webhook, attributes, store) &&
    [attributes.object, attributes.old].some(
      (object) => object !== undefined && webhook.objectSelector(object.metadata.labels ?? {}),
    )
  );
}

function ruleFits(
  { operations, apiGroups, apiVersions, resources, scope }: Rule,
  attributes: AdmissionAttributes,
): boolean {
  const { resource, subresource } = attributes.request;
  const scoped = scope === undefined || scope === '*' || scope === (resource.namespaced ? 'Namespaced' : 'Cluster');
  return (
    scoped &&
    listed(operations, attributes.operation) &&
    listed(apiGroups, resource.group) &&
    listed(apiVersions, resource.version) &&
    (resources ?? []).some((pattern) => resourceFits(pattern, resource, subresource))
  );
}

function listed(values: readonly string[] | undefined, wanted: string): boolean {
  return values !== undefined && (values.includes('*') || values.includes(wanted));
}

// A pattern is `plural`, `plural/subresource`, or either part as a star; without a slash it means objects, not
// subresources.
function resourceFits(pattern: string, { plural }: Resource, subresource: string | undefined): boolean {
  const [wanted, wantedSub] = pattern.split('/');
  if (wanted !== '*' && wanted !== plural) return false;
  if (wantedSub === undefined) return subresource === undefined;
  return wantedSub === '*' || wantedSub === subresource;
}

function namespaceFits(
  webhook: Webhook,
  { request, object, old }: AdmissionAttributes,
  store: Pick<Store, 'get'>,
): boolean {
  const { resource, namespace } = request;
  if (resource.group === '' && resource.plural === 'namespaces') {
    return webhook.namespaceSelector((object ?? old)?.metadata.labels ?? {});
  }
  if (!resource.namespaced) return true;
  const found = store.get({ resource: '/namespaces', namespace: '', name: namespace ?? '' });
  return webhook.namespaceSelector(found?.metadata.labels ?? {});
}
