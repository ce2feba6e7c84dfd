// The certificate of the admission webhook: one CA for ten years and one serving certificate for a year. A resync
// renews each after two thirds of its lifetime.

import { reasonOf } from '#core/failure/error-text.ts';
import type { KubeObject, WriteResult } from '#core/ports/cluster.ts';
import type { Validity } from '#core/ports/issuer.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Metrics } from '#core/ports/telemetry.ts';
import type { ReconcileDependencies } from '../deps.ts';
import {
  CERTIFICATE_SECRET,
  type CertificateDependencies,
  type CertificateView,
  CONFIGURATION_NAME,
  dnsNamesOf,
  observeCertificate,
  WEBHOOK_CONFIGURATIONS,
  writeSecret,
  writeWebhooks,
} from './objects.ts';

type RenewalContext = Pick<ReconcileDependencies, 'cluster' | 'clock' | 'log' | 'metrics'>;

export type CertificateAction = 'IssueCertificate' | 'TrustAuthorities' | 'RouteReviews' | 'WriteCertificate';

/** Actions that were done. `failed`: why the other actions were not done. */
export interface CertificateReport {
  readonly actions: ReadonlyArray<CertificateAction>;
  /** Kinds of webhook configurations that do not exist. Absent: both exist. */
  readonly missing?: ReadonlyArray<string>;
  readonly failed?: string;
}

const DAY = 86_400_000;
export const LIFETIMES: CertificateDependencies['lifetimes'] = { authority: 3_650 * DAY, serving: 365 * DAY };
/**
 * The maximum number of previous CAs that stay trusted with a new CA: certificates that Pods still use after failed
 * writes stay trusted.
 */
const MAX_PREVIOUS = 3;
/**
 * A certificate is valid from a time before it is issued, because clocks differ: a share of its lifetime, at most an
 * hour.
 */
const SKEW = 1 / 24;
const HOUR = 3_600_000;

const COUNTER = 'gateway_operator_certificate_actions_total';
const FAILED = { action: 'Keep', outcome: 'failed' };

/** Counts 0 at the start: an alert sees no increase in a series that appears with its first count. */
export function beginCertificateCounters(metrics: Pick<Metrics, 'add'>): void {
  metrics.add(COUNTER, FAILED, 0);
}

/**
 * Never rejects: a failed renewal does not delay VirtualKeys and instances. If another run is faster, the next resync
 * continues.
 */
export async function keepCertificate(
  context: RenewalContext,
  certificates: CertificateDependencies,
): Promise<CertificateReport> {
  const { log, metrics } = context;
  const actions: CertificateAction[] = [];
  const done = (action: CertificateAction, why: string) => {
    actions.push(action);
    metrics.add(COUNTER, { action, outcome: 'done' });
    log.info(`certificate of the admission webhook: ${action}`, { why });
  };
  try {
    const missing = await renew(context, certificates, done);
    return { actions, ...(missing.length > 0 && { missing }) };
  } catch (error) {
    metrics.add(COUNTER, FAILED);
    log.error('reconciler: cannot issue or renew the certificate of the admission webhook', { why: reasonOf(error) });
    return { actions, failed: reasonOf(error) };
  }
}

/**
 * Writes trust in a new CA before the certificate that it signed. Returns the kinds of configurations that do not
 * exist.
 */
async function renew(
  context: RenewalContext,
  certificates: CertificateDependencies,
  done: (action: CertificateAction, why: string) => void,
): Promise<ReadonlyArray<string>> {
  const { cluster, clock } = context;
  const view = await observeCertificate(cluster, certificates);
  const { secret, hooks } = view;
  watchExpiry(context, view, certificates.service.namespace);
  const missing = warnOfMissing(context, view);
  const whyIssue = whyIssued(view, clock.now());
  const issued = whyIssue === undefined ? undefined : await issue(certificates, view, clock.now());
  const { serving, previous = [] } = issued ?? (secret?.by === 'us' ? secret : {});
  const why = whyIssue ?? 'a webhook configuration does not trust the certificate';
  if (issued !== undefined) done('IssueCertificate', why);
  const authorities = serving && [...previous, serving.ca];
  // After a renewal, exactly these CAs are trusted. Before a renewal, more CAs may be trusted, because another run is
  // about to renew.
  const trusts = (bundle: ReadonlyArray<string>) =>
    authorities === undefined ||
    (authorities.every((ca) => bundle.includes(ca)) && (issued === undefined || bundle.length === authorities.length));
  for (const hook of hooks) {
    const isTrusting = hook.isInjected || hook.bundles.every(trusts);
    if (isTrusting && hook.isRouted) continue;
    if (!isWritten(await writeWebhooks(cluster, certificates, hook, isTrusting ? undefined : authorities)))
      return missing;
    if (isTrusting)
      done('RouteReviews', 'a webhook configuration calls another path than the admission webhook serves');
    else done('TrustAuthorities', why);
  }
  if (issued !== undefined && isWritten(await writeSecret(cluster, certificates.service, issued, secret)))
    done('WriteCertificate', why);
  return missing;
}

function warnOfMissing({ log }: RenewalContext, { hooks }: CertificateView): ReadonlyArray<string> {
  const found = new Set(hooks.map(({ resource }) => resource.kind));
  const missing = WEBHOOK_CONFIGURATIONS.map(({ kind }) => kind).filter((kind) => !found.has(kind));
  for (const kind of missing)
    log.warn(
      `${kind} ${CONFIGURATION_NAME} does not exist, so the API server does not call the admission webhook: install the operator's manifests again`,
    );
  return missing;
}

/** Whether a resync would renew the certificate, and why: a row of a dry run. */
export async function planCertificate(
  { cluster, clock }: Pick<RenewalContext, 'cluster' | 'clock'>,
  certificates: CertificateDependencies,
) {
  const why = whyIssued(await observeCertificate(cluster, certificates), clock.now());
  if (why === undefined) return [];
  const { namespace } = certificates.service;
  return [{ action: 'IssueCertificate', kind: 'Secret', namespace, name: CERTIFICATE_SECRET, why }] as const;
}

function whyIssued({ secret, hooks }: CertificateView, now: Millis): string | undefined {
  const isCertManagerUsed = hooks.length > 0 && hooks.every(({ isInjected }) => isInjected);
  if (secret === undefined) return isCertManagerUsed ? undefined : 'there is no certificate';
  const { by, serving } = secret;
  if (by !== 'us') return undefined;
  if (serving === undefined) return 'the certificate is damaged, or for another name';
  if (serving.from > now) return 'the certificate is not valid yet';
  if (serving.until <= now) return 'the certificate has expired';
  return isDue(serving, now) ? "two thirds of the certificate's lifetime are over" : undefined;
}

const isDue = ({ from, until }: Validity, now: Millis): boolean => now >= from + ((until - from) * 2) / 3;

/** Signs with the current CA, and no previous CA stays trusted; or with a new CA, if the current one is due. */
async function issue(certificates: CertificateDependencies, { secret, hooks }: CertificateView, now: Millis) {
  const { issuer, lifetimes } = certificates;
  const validity = (life: Millis) => ({ from: now - Math.min(HOUR, life * SKEW), until: now + life });
  const usable = secret?.authority !== undefined && !isDue(secret.authority, now) ? secret.authority : undefined;
  const order = { name: 'Gateway Operator admission', ...validity(lifetimes.authority) };
  const authority = usable ?? (await issuer.issueAuthority(order));
  const names = dnsNamesOf(certificates);
  const serving = await issuer.issue({ authority, names, ...validity(lifetimes.serving) });
  if (issuer.inspect(serving, names) === undefined) throw new Error('the issuer does not accept its own certificate');
  const known = new Set([
    ...(secret?.serving ? [secret.serving.ca] : []),
    ...hooks.flatMap(({ bundles }) => bundles.flat()),
  ]);
  return { authority, serving, previous: usable === undefined ? [...known].slice(0, MAX_PREVIOUS) : [] };
}

/** False: another run was faster, and the result of that run is observed. */
function isWritten(written: WriteResult<KubeObject>): boolean {
  if (written.ok) return true;
  if (['conflict', 'exists', 'gone'].includes(written.refusal)) return false;
  throw new Error(written.message);
}

/**
 * Records when each certificate expires. Warns in the last tenth of a lifetime if the reconciler does not renew the
 * certificate.
 */
function watchExpiry({ clock, log, metrics }: RenewalContext, { secret }: CertificateView, namespace: string): void {
  if (secret?.serving === undefined) return;
  const { from, until } = secret.serving;
  metrics.set('gateway_operator_certificate_expiry_timestamp_seconds', until / 1000);
  const isNear = until - clock.now() < (until - from) / 10;
  if (secret.by === 'us' || !isNear) return;
  // cert-manager renews much earlier, unless its Certificate is gone.
  const issuer =
    secret.by === 'cert-manager'
      ? 'cert-manager issues a new one if it still has a Certificate, else the reconciler does'
      : 'the reconciler issues a new one';
  const what = `Secret ${namespace}/${CERTIFICATE_SECRET} lacks the operator's label, and its certificate expires soon`;
  log.warn(`${what}: delete the Secret; then ${issuer}`, { until: new Date(until).toISOString() });
}
