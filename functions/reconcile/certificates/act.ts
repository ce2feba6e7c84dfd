// How is one step of a certificate's life done? Every write says which version it saw, so of two runs one is told to look again.
import type { Cluster, KubeObject, Written } from '#core/ports/cluster.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import { MANAGED_BY, MANAGED_BY_LABEL, OWNED, OWNED_LABEL } from '#crds/group.ts';
import { encode } from '../observe/secrets.ts';
import { ENTRIES, entriesOf, isOurs, nameOf, PREVIOUS, SERVING_SINCE, TRUSTED_SINCE } from './observe.ts';
import type { CertificateAction } from './plan.ts';
import type { Certificate, CertificateDeps, Contents, HookView, SecretView } from './view.ts';

/** The share of its life by which a certificate is valid before it is issued: clocks differ. An hour at most. */
const SKEW = 1 / 24;
const HOUR = 3_600_000;

export async function issueCertificate(certificates: CertificateDeps, now: Millis): Promise<Certificate> {
  const { issuer, lifetime } = certificates;
  const names = [nameOf(certificates)];
  const [from, until] = [now - Math.min(HOUR, lifetime * SKEW), now + lifetime];
  const pair = await issuer.issue({ authority: 'Gateway Operator admission', names, from, until });
  const validity = issuer.inspect(pair, names);
  if (validity === undefined) throw new Error('the issuer made a certificate that it does not accept itself');
  return { ...pair, ...validity };
}

export function act(
  action: Exclude<CertificateAction, { action: 'IssueCertificate' }>,
  { cluster, certificates, secret }: { cluster: Cluster; certificates: CertificateDeps; secret: SecretView },
): Promise<Written<KubeObject>> {
  if (action.action === 'TrustAuthorities') return trustAuthorities(cluster, certificates, action);
  return secret.state === 'own'
    ? replaceContents(cluster, certificates, action.contents, secret.resourceVersion)
    : createSecret(cluster, certificates, action.contents);
}

/** A merge patch replaces lists whole: entries of others go back as they were read, and the version guards them. */
function trustAuthorities(
  cluster: Cluster,
  certificates: CertificateDeps,
  { hook, authorities }: { readonly hook: HookView; readonly authorities: ReadonlyArray<string> },
): Promise<Written<KubeObject>> {
  const { resource, object } = hook;
  const caBundle = encode(authorities.join(''));
  const webhooks = entriesOf(object).map((entry) =>
    isOurs(entry, certificates) ? { ...entry, clientConfig: { ...entry.clientConfig, caBundle } } : entry,
  );
  const { name, resourceVersion } = object.metadata;
  return cluster.patch(resource, undefined, name, { metadata: { resourceVersion }, webhooks });
}

function createSecret(cluster: Cluster, { service, secret }: CertificateDeps, contents: Contents) {
  return cluster.create(RESOURCES.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: {
      name: secret,
      namespace: service.namespace,
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY, [OWNED_LABEL]: OWNED },
      annotations: present(annotationsOf(contents)),
    },
    data: present(dataOf(contents)),
  });
}

function replaceContents(
  cluster: Cluster,
  { service, secret }: CertificateDeps,
  contents: Contents,
  resourceVersion: string,
) {
  return cluster.patch(RESOURCES.secrets, service.namespace, secret, {
    metadata: { resourceVersion, annotations: annotationsOf(contents) },
    data: dataOf(contents),
  });
}

/** Null: not there. */
type Texts = Readonly<Record<string, string | null>>;

function dataOf({ serving, next, previous }: Contents): Texts {
  return {
    ...pairData(ENTRIES.serving, serving),
    ...pairData(ENTRIES.next, next),
    [PREVIOUS]: previous.length === 0 ? null : encode(previous.join('')),
  };
}

function pairData(at: { ca: string; cert: string; key: string }, pair: Certificate | undefined): Texts {
  const entry = (text: string | undefined) => (text === undefined ? null : encode(text));
  return { [at.ca]: entry(pair?.ca), [at.cert]: entry(pair?.cert), [at.key]: entry(pair?.key) };
}

function annotationsOf({ next, servingSince, trustedSince }: Contents): Texts {
  return {
    [SERVING_SINCE]: toTime(servingSince),
    [TRUSTED_SINCE]: next === undefined ? null : toTime(trustedSince),
  };
}

const toTime = (time: Millis | undefined): string | null => (time === undefined ? null : new Date(time).toISOString());

const present = (texts: Texts): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).flatMap(([name, text]) => (text === null ? [] : [[name, text]])));
