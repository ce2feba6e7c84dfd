// The certificate of admission: one CA for ten years, one serving certificate for a year, each renewed at two thirds by a sweep.
import type { Clock, Log, Metrics } from '#core/ports/clock.ts';
import type { Cluster, KubeObject, Written } from '#core/ports/cluster.ts';
import type { Validity } from '#core/ports/issuer.ts';
import type { Millis } from '#core/ports/money.ts';
import { reasonOf } from '#core/reason.ts';
import * as objects from './objects.ts';
import { type CertificateDeps, type Contents, type HookView, SECRET, type SecretView, type View } from './objects.ts';

export interface Keeper {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export type CertificateAction = 'IssueCertificate' | 'TrustAuthorities' | 'WriteCertificate';

/** Actions that were done; `failed` says why there are no more. */
export interface CertificateReport {
  readonly actions: ReadonlyArray<CertificateAction>;
  readonly failed?: string;
}

const DAY = 86_400_000;
export const LIFETIMES: CertificateDeps['lifetimes'] = { authority: 3_650 * DAY, serving: 365 * DAY };
/** Of a run: other runs may come in between. */
const MAX_PASSES = 6;
/** CAs that a new one keeps, the oldest first: however often a write fails, what Pods show stays trusted. */
const MAX_PREVIOUS = 3;
/** A certificate is valid so much earlier than it is issued, because clocks differ: a share of its life, an hour at most. */
const SKEW = 1 / 24;
const HOUR = 3_600_000;

/** Never rejects: keys and instances do not wait for certificates. */
export async function keepCertificate(keeper: Keeper, certificates: CertificateDeps): Promise<CertificateReport> {
  const { cluster, clock, log, metrics } = keeper;
  const actions: CertificateAction[] = [];
  const done = (action: CertificateAction, why: string) => {
    actions.push(action);
    metrics.add('gateway_operator_certificate_actions_total', { action, outcome: 'done' });
    log.info(`certificate of admission: ${action}`, { why });
  };
  try {
    let fresh: Contents | undefined;
    for (let pass = 0; pass < MAX_PASSES; pass += 1) {
      const view = await objects.observe(cluster, certificates);
      const why = whyRenewed(view.secret, clock.now());
      if (why !== undefined && fresh === undefined) {
        fresh = await issue(certificates, view.secret, clock.now());
        done('IssueCertificate', why);
      }
      const steps = why === undefined || fresh === undefined ? mend(view) : renew(view, fresh, why);
      watchExpiry(keeper, view, certificates);
      if (steps === undefined || !(await carry(keeper, certificates, { ...steps, over: view.secret, done }))) break;
    }
    return { actions };
  } catch (error) {
    metrics.add('gateway_operator_certificate_actions_total', { action: 'Keep', outcome: 'failed' });
    log.error('the certificate of admission could not be kept', { why: reasonOf(error) });
    return { actions, failed: reasonOf(error) };
  }
}

/** Whether a sweep would renew, and why: as a row of a dry run. */
export async function planCertificate(
  { cluster, clock }: Pick<Keeper, 'cluster' | 'clock'>,
  certificates: CertificateDeps,
) {
  const { secret } = await objects.observe(cluster, certificates);
  const why = whyRenewed(secret, clock.now());
  if (why === undefined) return [];
  return [
    { action: 'IssueCertificate', kind: 'Secret', namespace: certificates.service.namespace, name: SECRET, why },
  ] as const;
}

function whyRenewed(secret: SecretView | undefined, now: Millis): string | undefined {
  if (secret === undefined) return 'there is no certificate';
  const { by, serving } = secret;
  if (by !== 'us') return undefined;
  if (serving === undefined) return 'the certificate is damaged, or for another name';
  if (serving.from > now) return 'the certificate is not valid yet';
  if (serving.until <= now) return 'the certificate has expired';
  return isDue(serving, now) ? "two thirds of the certificate's life are over" : undefined;
}

const isDue = ({ from, until }: Validity, now: Millis): boolean => now >= from + ((until - from) * 2) / 3;

/** Signed by the CA that there is, or by a new one. */
async function issue(certificates: CertificateDeps, secret: SecretView | undefined, now: Millis): Promise<Contents> {
  const { issuer, lifetimes } = certificates;
  const validity = (life: Millis) => ({ from: now - Math.min(HOUR, life * SKEW), until: now + life });
  const isUsable = secret?.authority !== undefined && !isDue(secret.authority, now);
  const order = { name: 'Gateway Operator admission', ...validity(lifetimes.authority) };
  const authority = isUsable ? secret.authority : await issuer.issueAuthority(order);
  const names = objects.namesOf(certificates);
  const serving = await issuer.issue({ authority, names, ...validity(lifetimes.serving) });
  if (issuer.inspect(serving, names) === undefined) throw new Error('the issuer does not accept its own certificate');
  return { authority, serving, previous: [] };
}

/** CAs to be trusted by configurations that do not, and what the Secret holds then. */
interface Steps {
  readonly authorities: ReadonlyArray<string>;
  readonly untold: ReadonlyArray<HookView>;
  readonly contents?: Contents;
  readonly why: string;
}

/** Exactly the CAs in use are trusted then: with the same CA nothing that Pods show needs the one before it any more. */
function renew({ secret, hooks }: View, fresh: Contents, why: string): Steps {
  const { ca } = fresh.serving;
  const known = new Set([secret?.serving?.ca ?? ca, ...hooks.flatMap(({ bundles }) => bundles.flat())]);
  known.delete(ca);
  const previous = ca === secret?.authority?.cert ? [] : [...known].slice(0, MAX_PREVIOUS);
  const authorities = [...previous, ca];
  const isExact = (bundle: ReadonlyArray<string>) =>
    bundle.length === authorities.length && trusts(bundle, authorities);
  const untold = hooks.filter(({ bundles }) => !bundles.every(isExact));
  return { authorities, untold, contents: { ...fresh, previous }, why };
}

/** A configuration that is new, or lost its CA; undefined where nothing is to be done. */
function mend({ secret, hooks }: View): Steps | undefined {
  if (secret?.by !== 'us' || secret.serving === undefined) return undefined;
  const authorities = [...secret.previous, secret.serving.ca];
  const untold = hooks.filter(({ bundles }) => !bundles.every((bundle) => trusts(bundle, authorities)));
  return untold.length === 0
    ? undefined
    : { authorities, untold, why: 'a configuration does not trust the certificate' };
}

const trusts = (bundle: ReadonlyArray<string>, authorities: ReadonlyArray<string>): boolean =>
  authorities.every((ca) => bundle.includes(ca));

interface Carried extends Steps {
  readonly over: SecretView | undefined;
  readonly done: (action: CertificateAction, why: string) => void;
}

/** Trust comes first, then what is trusted. Answers whether to observe again: always but where there was nothing to do. */
async function carry({ cluster }: Keeper, certificates: CertificateDeps, steps: Carried): Promise<boolean> {
  const { untold, authorities, contents, why, over, done } = steps;
  for (const hook of untold) {
    if (!isWritten(await objects.writeBundle(cluster, certificates, hook, authorities))) return true;
    done('TrustAuthorities', why);
  }
  if (contents === undefined) return untold.length > 0;
  if (isWritten(await objects.writeSecret(cluster, certificates.service, contents, over)))
    done('WriteCertificate', why);
  return true;
}

/** False: another run was faster, and what it wrote is observed. */
function isWritten(written: Written<KubeObject>): boolean {
  if (written.ok) return true;
  if (['conflict', 'exists', 'gone'].includes(written.refusal)) return false;
  throw new Error(written.message);
}

/** Told of every certificate; warned of one that nobody renews, in the last tenth of its life. */
function watchExpiry({ clock, log, metrics }: Keeper, { secret }: View, { service }: CertificateDeps): void {
  if (secret?.serving === undefined) return;
  const { from, until } = secret.serving;
  metrics.set('gateway_operator_certificate_expiry_timestamp_seconds', until / 1000);
  const isNear = until - clock.now() < (until - from) / 10;
  if (secret.by !== 'somebody else' || !isNear) return;
  const what = `Secret ${service.namespace}/${SECRET} is not ours, and its certificate ends`;
  log.warn(`${what}: delete it, and reconcile issues one and renews it`, { until: new Date(until).toISOString() });
}
