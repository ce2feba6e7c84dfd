// What lies in the Secret, and whom do the webhook configurations trust?
import type { Cluster, KubeObject, Resource } from '#core/ports/cluster.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { Issuer, Pair } from '#core/ports/issuer.ts';
import type { Millis } from '#core/ports/money.ts';
import { OWNED, OWNED_LABEL } from '#crds/group.ts';
import { dataOf, decode } from '../observe/secrets.ts';
import type { Certificate, CertificateDeps, HookView, OwnSecret, SecretView, View } from './view.ts';

const configurations = (plural: string, kind: string): Resource => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural,
  kind,
});
export const HOOKS: ReadonlyArray<Resource> = [
  configurations('mutatingwebhookconfigurations', 'MutatingWebhookConfiguration'),
  configurations('validatingwebhookconfigurations', 'ValidatingWebhookConfiguration'),
];

/** Entries of the Secret. `tls.crt` and `tls.key` are what Pods mount. */
export const ENTRIES = {
  serving: { ca: 'ca.crt', cert: 'tls.crt', key: 'tls.key' },
  next: { ca: 'next-ca.crt', cert: 'next-tls.crt', key: 'next-tls.key' },
} as const satisfies Record<string, Pair>;
export const PREVIOUS = 'previous-ca.crt';
export const SERVING_SINCE = 'gateway-operator.dev/serving-since';
export const TRUSTED_SINCE = 'gateway-operator.dev/next-trusted-since';

const CERT_MANAGER = 'cert-manager.io/';

/** The name by which API servers call a Service, and check its certificate. */
export const nameOf = ({ service }: CertificateDeps): string => `${service.name}.${service.namespace}.svc`;

/**
 * Configurations before the Secret: what they trust was in the Secret first, so a run never takes for unused what another has just made.
 * Throws when the API server does not say.
 */
export async function observe(cluster: Cluster, certificates: CertificateDeps): Promise<View> {
  const found = await Promise.all(
    HOOKS.map(async (resource) => {
      const object = await cluster.get(resource, undefined, certificates.webhooks);
      return object === undefined ? [] : toHookView(resource, object, certificates);
    }),
  );
  const secret = await cluster.get(RESOURCES.secrets, certificates.service.namespace, certificates.secret);
  return { hooks: found.flat(), secret: toSecretView(secret, certificates) };
}

interface WebhookEntry {
  readonly clientConfig?: {
    readonly caBundle?: string;
    readonly service?: { readonly namespace?: string; readonly name?: string };
  };
}

/** The API server guarantees the shape. */
export const entriesOf = ({ webhooks }: KubeObject): ReadonlyArray<WebhookEntry> =>
  Array.isArray(webhooks) ? (webhooks as WebhookEntry[]) : [];

export function isOurs({ clientConfig }: WebhookEntry, { service }: CertificateDeps): boolean {
  const called = clientConfig?.service;
  return called?.namespace === service.namespace && called.name === service.name;
}

function toHookView(resource: Resource, object: KubeObject, certificates: CertificateDeps): HookView[] {
  const isInjected = Object.keys(object.metadata.annotations ?? {}).some((name) =>
    name.startsWith(`${CERT_MANAGER}inject`),
  );
  const ours = entriesOf(object).filter((entry) => isOurs(entry, certificates));
  if (isInjected || ours.length === 0) return [];
  const bundles = ours.map(({ clientConfig }) => certificates.issuer.split(text(clientConfig?.caBundle)));
  return [{ resource, object, bundles }];
}

function toSecretView(secret: KubeObject | undefined, { issuer, ...certificates }: CertificateDeps): SecretView {
  if (secret === undefined) return { state: 'absent' };
  const { labels = {}, annotations = {}, resourceVersion = '' } = secret.metadata;
  const names = [nameOf({ issuer, ...certificates })];
  const data = dataOf(secret);
  const byCertManager = Object.keys(annotations).some((name) => name.startsWith(CERT_MANAGER));
  // One that was ours may have become cert-manager's.
  if (byCertManager || labels[OWNED_LABEL] !== OWNED) {
    // By hand it is often one that signed itself.
    const at =
      data[ENTRIES.serving.ca] === undefined ? { ...ENTRIES.serving, ca: ENTRIES.serving.cert } : ENTRIES.serving;
    const serving = certificateIn(data, at, { issuer, names });
    const by = byCertManager ? 'cert-manager' : 'somebody else';
    return { state: 'foreign', by, ...(serving === undefined ? {} : { serving }) };
  }
  const serving = certificateIn(data, ENTRIES.serving, { issuer, names });
  const own: OwnSecret = {
    state: 'own',
    resourceVersion,
    ...(serving === undefined ? {} : { serving }),
    next: certificateIn(data, ENTRIES.next, { issuer, names }),
    previous: issuer.split(text(data[PREVIOUS])).filter((ca) => ca !== serving?.ca),
    servingSince: timeIn(annotations[SERVING_SINCE]),
    trustedSince: timeIn(annotations[TRUSTED_SINCE]),
  };
  return own;
}

interface Judge {
  readonly issuer: Issuer;
  readonly names: ReadonlyArray<string>;
}

function certificateIn(
  data: Readonly<Record<string, string>>,
  at: Pair,
  { issuer, names }: Judge,
): Certificate | undefined {
  const pair = { ca: text(data[at.ca]), cert: text(data[at.cert]), key: text(data[at.key]) };
  const validity = issuer.inspect(pair, names);
  // In the one form: so it can be looked for in bundles.
  const [ca] = issuer.split(pair.ca);
  return validity === undefined || ca === undefined ? undefined : { ...pair, ca, ...validity };
}

/** Empty where it is not there, or no text. */
function text(base64: string | undefined): string {
  try {
    return base64 === undefined ? '' : decode(base64);
  } catch {
    return '';
  }
}

function timeIn(annotation: string | undefined): Millis | undefined {
  const time = Date.parse(annotation ?? '');
  return Number.isNaN(time) ? undefined : time;
}
