// The certificate of admission: one CA for ten years, one serving certificate for a year, each renewed at two thirds by
// a resync.

import { reasonOf } from '#core/failure/error-text.ts';
import type { Metrics } from '#core/ports/clock.ts';
import type { KubeObject, WriteResult } from '#core/ports/cluster.ts';
import type { Validity } from '#core/ports/issuer.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ReconcileDeps } from '../deps.ts';
import {
  type CertificateDeps,
  type Contents,
  HOOKS,
  namesOf,
  observe,
  SECRET,
  type View,
  WEBHOOKS,
  writeHook,
  writeSecret,
} from './objects.ts';

type Keeper = Pick<ReconcileDeps, 'cluster' | 'clock' | 'log' | 'metrics'>;

export type CertificateAction = 'IssueCertificate' | 'TrustAuthorities' | 'RouteReviews' | 'WriteCertificate';

/** Actions that were done; `failed`: the reason why the other actions were not done. */
export interface CertificateReport {
  readonly actions: ReadonlyArray<CertificateAction>;
  /** Kinds of the webhook configurations that are not there. Absent: both are. */
  readonly missing?: ReadonlyArray<string>;
  readonly failed?: string;
}

const DAY = 86_400_000;
export const LIFETIMES: CertificateDeps['lifetimes'] = { authority: 3_650 * DAY, serving: 365 * DAY };
/** CAs that a new one keeps, the oldest first: however often a write fails, what Pods show stays trusted. */
const MAX_PREVIOUS = 3;
/**
 * A certificate is valid so much earlier than it is issued, because clocks differ: a share of its life, an hour at
 * most.
 */
const SKEW = 1 / 24;
const HOUR = 3_600_000;

const COUNTER = 'gateway_operator_certificate_actions_total';
const FAILED = { action: 'Keep', outcome: 'failed' };

/** With 0: a series that appears with its first count has never increased for an alert. */
export function beginCertificateCounters(metrics: Pick<Metrics, 'add'>): void {
  metrics.add(COUNTER, FAILED, 0);
}

/**
 * Never rejects: keys and instances do not wait for certificates. Where another run is faster, the next resync
 * continues.
 */
export async function keepCertificate(keeper: Keeper, certificates: CertificateDeps): Promise<CertificateReport> {
  const { log, metrics } = keeper;
  const actions: CertificateAction[] = [];
  const done = (action: CertificateAction, why: string) => {
    actions.push(action);
    metrics.add(COUNTER, { action, outcome: 'done' });
    log.info(`certificate of admission: ${action}`, { why });
  };
  try {
    const missing = await keep(keeper, certificates, done);
    return { actions, ...(missing.length > 0 && { missing }) };
  } catch (error) {
    metrics.add(COUNTER, FAILED);
    log.error('the certificate of admission could not be kept', { why: reasonOf(error) });
    return { actions, failed: reasonOf(error) };
  }
}

/** Trust comes first, then what is trusted. Answers the kinds of the configurations that are not there. */
async function keep(
  keeper: Keeper,
  certificates: CertificateDeps,
  done: (action: CertificateAction, why: string) => void,
): Promise<ReadonlyArray<string>> {
  const { cluster, clock } = keeper;
  const view = await observe(cluster, certificates);
  const { secret, hooks } = view;
  watchExpiry(keeper, view, certificates);
  const missing = warnOfMissing(keeper, view);
  const whyFresh = whyIssued(view, clock.now());
  const fresh = whyFresh === undefined ? undefined : await issue(certificates, view, clock.now());
  const { serving, previous = [] } = fresh ?? (secret?.by === 'us' ? secret : {});
  const why = whyFresh ?? 'a configuration does not trust the certificate';
  if (fresh !== undefined) done('IssueCertificate', why);
  const authorities = serving && [...previous, serving.ca];
  // A renewal leaves exactly these. Before it more may be trusted: another run is about to renew.
  const isTold = (bundle: ReadonlyArray<string>) =>
    authorities === undefined ||
    (authorities.every((ca) => bundle.includes(ca)) && (fresh === undefined || bundle.length === authorities.length));
  for (const hook of hooks) {
    const isTrusting = hook.isInjected || hook.bundles.every(isTold);
    if (isTrusting && hook.isRouted) continue;
    if (!isWritten(await writeHook(cluster, certificates, hook, isTrusting ? undefined : authorities))) return missing;
    if (isTrusting) done('RouteReviews', 'a configuration calls another path than admission serves');
    else done('TrustAuthorities', why);
  }
  if (fresh !== undefined && isWritten(await writeSecret(cluster, certificates.service, fresh, secret)))
    done('WriteCertificate', why);
  return missing;
}

function warnOfMissing({ log }: Keeper, { hooks }: View): ReadonlyArray<string> {
  const missing = HOOKS.map(({ kind }) => kind).filter((kind) => !hooks.some(({ resource }) => resource.kind === kind));
  for (const kind of missing)
    log.warn(`there is no ${kind} ${WEBHOOKS}, so admission is not asked: install the operator's manifests again`);
  return missing;
}

/** Whether a resync would renew, and why: as a row of a dry run. */
export async function planCertificate(
  { cluster, clock }: Pick<Keeper, 'cluster' | 'clock'>,
  certificates: CertificateDeps,
) {
  const why = whyIssued(await observe(cluster, certificates), clock.now());
  if (why === undefined) return [];
  return [
    { action: 'IssueCertificate', kind: 'Secret', namespace: certificates.service.namespace, name: SECRET, why },
  ] as const;
}

function whyIssued({ secret, hooks }: View, now: Millis): string | undefined {
  const isCertManagers = hooks.length > 0 && hooks.every(({ isInjected }) => isInjected);
  if (secret === undefined) return isCertManagers ? undefined : 'there is no certificate';
  const { by, serving } = secret;
  if (by !== 'us') return undefined;
  if (serving === undefined) return 'the certificate is damaged, or for another name';
  if (serving.from > now) return 'the certificate is not valid yet';
  if (serving.until <= now) return 'the certificate has expired';
  return isDue(serving, now) ? "two thirds of the certificate's life are over" : undefined;
}

const isDue = ({ from, until }: Validity, now: Millis): boolean => now >= from + ((until - from) * 2) / 3;

/** Signed by the CA that there is, which then needs none before it any more; or by a new one. */
async function issue(certificates: CertificateDeps, { secret, hooks }: View, now: Millis): Promise<Contents> {
  const { issuer, lifetimes } = certificates;
  const validity = (life: Millis) => ({ from: now - Math.min(HOUR, life * SKEW), until: now + life });
  const usable = secret?.authority !== undefined && !isDue(secret.authority, now) ? secret.authority : undefined;
  const order = { name: 'Gateway Operator admission', ...validity(lifetimes.authority) };
  const authority = usable ?? (await issuer.issueAuthority(order));
  const names = namesOf(certificates);
  const serving = await issuer.issue({ authority, names, ...validity(lifetimes.serving) });
  if (issuer.inspect(serving, names) === undefined) throw new Error('the issuer does not accept its own certificate');
  const known = new Set([
    ...(secret?.serving ? [secret.serving.ca] : []),
    ...hooks.flatMap(({ bundles }) => bundles.flat()),
  ]);
  return { authority, serving, previous: usable === undefined ? [...known].slice(0, MAX_PREVIOUS) : [] };
}

/** False: another run was faster, and what it wrote is observed. */
function isWritten(written: WriteResult<KubeObject>): boolean {
  if (written.ok) return true;
  if (['conflict', 'exists', 'gone'].includes(written.refusal)) return false;
  throw new Error(written.message);
}

/** Records when each certificate ends; warns in the last tenth of its life where reconcile does not renew it. */
function watchExpiry({ clock, log, metrics }: Keeper, { secret }: View, { service }: CertificateDeps): void {
  if (secret?.serving === undefined) return;
  const { from, until } = secret.serving;
  metrics.set('gateway_operator_certificate_expiry_timestamp_seconds', until / 1000);
  const isNear = until - clock.now() < (until - from) / 10;
  if (secret.by !== 'somebody else' || !isNear) return;
  const what = `Secret ${service.namespace}/${SECRET} is not ours, and its certificate ends`;
  log.warn(`${what}: delete it, and reconcile issues one and renews it`, { until: new Date(until).toISOString() });
}
