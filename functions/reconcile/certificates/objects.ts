// The Secret with the admission webhook's certificate, and the webhook configurations that trust the certificate:
// reading, and writing of the version that was read.
import { fromBase64, toBase64 } from '#core/json/base64.ts';
import { type Cluster, type KubeObject, RESOURCES, type Resource, type WriteResult } from '#core/ports/cluster.ts';
import type { CertificateAndKey, Issuer, ServingCertificate, Validity } from '#core/ports/issuer.ts';
import type { Millis } from '#core/ports/money.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE, OWNED_LABELS } from '#crds/names/group.ts';

/** Absent: something else provides the certificate on this platform, such as cert-manager. */
export interface CertificateDependencies {
  readonly issuer: Issuer;
  /** The Service by which API servers call the admission webhook. */
  readonly service: { readonly namespace: string; readonly name: string };
  /**
   * The path segment with which calls of the API server to the admission webhook begin. Absent: the paths in the
   * configurations are not changed.
   */
  readonly path?: string;
  /** Lifetimes, from issuing to expiry. */
  readonly lifetimes: { readonly authority: Millis; readonly serving: Millis };
}

/** A member is absent if it is damaged, or if it is for another name. */
export interface CertificateSecret {
  /** Whether the Secret has our label: no other Secret is written to. */
  readonly by: 'us' | 'cert-manager' | 'somebody else';
  readonly resourceVersion: string;
  readonly serving: (ServingCertificate & Validity) | undefined;
  readonly authority: (CertificateAndKey & Validity) | undefined;
  /** Previous CAs, trusted until the next renewal: Pods may still use certificates that these CAs signed. */
  readonly previous: ReadonlyArray<string>;
}

/** A webhook configuration, and its entries that call our Service. */
export interface WebhookView {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** The CAs that each entry trusts. */
  readonly bundles: ReadonlyArray<ReadonlyArray<string>>;
  /** Whether cert-manager writes the CA: then the operator writes only the paths. */
  readonly isInjected: boolean;
  /** Whether each entry calls the current path of the admission webhook. */
  readonly isRouted: boolean;
}

export type CertificateView = Awaited<ReturnType<typeof observeCertificate>>;

export const WEBHOOK_CONFIGURATIONS: ReadonlyArray<Resource> = ['Mutating', 'Validating'].map((verb) => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: `${verb.toLowerCase()}webhookconfigurations`,
  kind: `${verb}WebhookConfiguration`,
}));
/**
 * Names of the configurations (infra/packaging/manifests/webhooks.ts) and of the Secret, which is in the namespace of
 * the Service.
 */
export const CONFIGURATION_NAME = 'gateway-operator';
export const CERTIFICATE_SECRET = 'admission-tls';
const PREVIOUS = 'previous-ca.crt';
const CERT_MANAGER = 'cert-manager.io/';

/** The DNS name of the Service, for which the certificate is issued. */
export const dnsNamesOf = ({ service }: CertificateDependencies): string[] => [
  `${service.name}.${service.namespace}.svc`,
];

/**
 * Reads the configurations before the Secret: a CA that they trust was issued before they were written. Throws if the
 * API server cannot be read.
 */
export async function observeCertificate(cluster: Cluster, certificates: CertificateDependencies) {
  const hooks = WEBHOOK_CONFIGURATIONS.map(async (resource): Promise<WebhookView[]> => {
    const object = await cluster.get(resource, undefined, CONFIGURATION_NAME);
    if (object === undefined) return [];
    const ours = entriesOf(object).filter((entry) => isOurs(entry, certificates));
    const bundles = ours.map(({ clientConfig }) => certificates.issuer.split(textOf(clientConfig?.caBundle)));
    const isRouted = ours.every((entry) => isSamePath(entry, pathOf(resource, certificates)));
    return [{ resource, object, bundles, isInjected: hasAnnotation(object, `${CERT_MANAGER}inject`), isRouted }];
  });
  const found = (await Promise.all(hooks)).flat();
  const secret = await cluster.get(RESOURCES.secrets, certificates.service.namespace, CERTIFICATE_SECRET);
  return { hooks: found, secret: secret && toSecretView(secret, certificates) };
}

/**
 * Writes the path of the admission webhook, and the CAs if they are given. A merge patch replaces whole lists, so
 * entries of others are sent as they were read.
 */
export function writeWebhooks(
  cluster: Cluster,
  certificates: CertificateDependencies,
  { resource, object }: WebhookView,
  authorities: ReadonlyArray<string> | undefined,
): Promise<WriteResult<KubeObject>> {
  const trust = authorities === undefined ? {} : { caBundle: toBase64(authorities.join('')) };
  const path = pathOf(resource, certificates);
  const webhooks = entriesOf(object).map((entry) => {
    if (!isOurs(entry, certificates)) return entry;
    const service = { ...entry.clientConfig?.service, ...(path === undefined ? {} : { path }) };
    return { ...entry, clientConfig: { ...entry.clientConfig, service, ...trust } };
  });
  const { resourceVersion } = object.metadata;
  return cluster.patch(resource, undefined, CONFIGURATION_NAME, { metadata: { resourceVersion }, webhooks });
}

export type SecretContents = Pick<CertificateSecret, 'previous'> & {
  readonly serving: ServingCertificate;
  readonly authority: CertificateAndKey;
};

/** Pods mount `tls.crt` and `tls.key`. */
export function writeSecret(
  cluster: Cluster,
  { namespace }: CertificateDependencies['service'],
  { serving: { ca, cert, key }, authority, previous }: SecretContents,
  existing: CertificateSecret | undefined,
): Promise<WriteResult<KubeObject>> {
  const data = {
    'ca.crt': toBase64(ca),
    'ca.key': toBase64(authority.key),
    [PREVIOUS]: toBase64(previous.join('')),
    'tls.crt': toBase64(cert),
    'tls.key': toBase64(key),
  };
  if (existing !== undefined) {
    const metadata = { resourceVersion: existing.resourceVersion };
    return cluster.patch(RESOURCES.secrets, namespace, CERTIFICATE_SECRET, { metadata, data });
  }
  const metadata = { name: CERTIFICATE_SECRET, namespace, labels: OWNED_LABELS };
  const tls = { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls' };
  return cluster.create(RESOURCES.secrets, { ...tls, metadata, data });
}

interface WebhookEntry {
  readonly clientConfig?: {
    readonly caBundle?: string;
    readonly service?: { readonly namespace?: string; readonly name?: string; readonly path?: string };
  };
}

/** The API server guarantees the shape. */
const entriesOf = ({ webhooks }: KubeObject): ReadonlyArray<WebhookEntry> =>
  Array.isArray(webhooks) ? (webhooks as WebhookEntry[]) : [];

const isOurs = ({ clientConfig }: WebhookEntry, { service }: CertificateDependencies): boolean =>
  clientConfig?.service?.namespace === service.namespace && clientConfig.service.name === service.name;

const pathOf = ({ kind }: Resource, { path }: CertificateDependencies): string | undefined =>
  path === undefined ? undefined : `/${path}/${kind.startsWith('Mutating') ? 'mutate' : 'validate'}`;

const isSamePath = ({ clientConfig }: WebhookEntry, path: string | undefined): boolean =>
  path === undefined || clientConfig?.service?.path === path;

const hasAnnotation = ({ metadata }: KubeObject, prefix: string): boolean =>
  Object.keys(metadata.annotations ?? {}).some((name) => name.startsWith(prefix));

function toSecretView(secret: KubeObject, certificates: CertificateDependencies): CertificateSecret {
  const { issuer } = certificates;
  const { labels = {}, resourceVersion = '' } = secret.metadata;
  // The API server guarantees the shape of a Secret's data.
  const data = (secret.data ?? {}) as Readonly<Record<string, string>>;
  const text = (entry: string) => textOf(data[entry]);
  // The PEM text in one normal form, so that a bundle can be searched for it.
  const [ca = ''] = issuer.split(text('ca.crt'));
  const pair = { ca, cert: text('tls.crt'), key: text('tls.key') };
  const signer = { cert: ca, key: text('ca.key') };
  const validity = issuer.inspect(pair, dnsNamesOf(certificates));
  const signerValidity = issuer.inspect({ ca, ...signer }, []);
  const other = hasAnnotation(secret, CERT_MANAGER) ? 'cert-manager' : 'somebody else';
  return {
    by: other === 'somebody else' && labels[OWNED_LABEL] === OWNED_LABEL_VALUE ? 'us' : other,
    resourceVersion,
    serving: validity && { ...pair, ...validity },
    authority: signerValidity && { ...signer, ...signerValidity },
    previous: issuer.split(text(PREVIOUS)),
  };
}

/** Empty if the value is absent or not a text. */
function textOf(base64: string | undefined): string {
  try {
    return base64 === undefined ? '' : fromBase64(base64);
  } catch {
    return '';
  }
}
