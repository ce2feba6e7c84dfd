// How does a sweep keep the certificate of admission good? One step after the other, looking again after each write.
import type { Clock, Log, Metrics } from '#core/ports/clock.ts';
import type { Cluster, WriteRefusal } from '#core/ports/cluster.ts';
import { reasonOf } from '#core/reason.ts';
import { act, issueCertificate } from './act.ts';
import { observe } from './observe.ts';
import { type CertificateAction, plan } from './plan.ts';
import type { Certificate, CertificateDeps, View } from './view.ts';

export interface Keeper {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The object that a step is about. */
interface About {
  readonly kind: string;
  /** Empty: of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
}

export interface CertificateRow extends About {
  readonly action: CertificateAction['action'];
  readonly why: string;
}

/** More than any way from nothing to a trusted certificate, other runs in between. */
const MOST_STEPS = 16;
/** Somebody else was faster: what they wrote is looked at. */
const OVERTAKEN: ReadonlySet<WriteRefusal> = new Set(['conflict', 'exists', 'gone']);

/** Actions that were done, by name; `failed` says why there are no more. Never rejects: keys and instances do not wait for certificates. */
export interface CertificateReport {
  readonly actions: ReadonlyArray<CertificateAction['action']>;
  readonly failed?: string;
}

export async function keepCertificate(keeper: Keeper, certificates: CertificateDeps): Promise<CertificateReport> {
  const { cluster, clock, log, metrics } = keeper;
  const actions: CertificateAction['action'][] = [];
  try {
    let view = await observe(cluster, certificates);
    for (let step = 0; step < MOST_STEPS; step += 1) {
      const action = plan(view, clock.now(), certificates);
      if (action === undefined) break;
      if (action.action === 'IssueCertificate') {
        view = { ...view, fresh: await issueCertificate(certificates, clock.now()) };
      } else {
        const { secret, fresh } = view;
        const written = await act(action, { cluster, certificates, secret });
        if (!written.ok && !OVERTAKEN.has(written.refusal)) throw new Error(`${action.action}: ${written.message}`);
        view = { ...(await observe(cluster, certificates)), fresh };
        if (!written.ok) continue;
      }
      actions.push(action.action);
      metrics.add('gateway_operator_certificate_actions_total', { action: action.action, outcome: 'done' });
      log.info(`certificate of admission: ${action.action}`, {
        ...aboutOf(action, certificates),
        why: action.why,
      });
    }
    tell(keeper, view, certificates);
    return { actions };
  } catch (error) {
    metrics.add('gateway_operator_certificate_actions_total', { action: 'Keep', outcome: 'failed' });
    log.error('the certificate of admission could not be kept', { why: reasonOf(error) });
    return { actions, failed: reasonOf(error) };
  }
}

/** The first step that a sweep would take, if any; what follows depends on what it finds then. */
export async function foreseeCertificate(
  { cluster, clock }: Pick<Keeper, 'cluster' | 'clock'>,
  certificates: CertificateDeps,
): Promise<ReadonlyArray<CertificateRow>> {
  const action = plan(await observe(cluster, certificates), clock.now(), certificates);
  return action === undefined ? [] : [{ action: action.action, ...aboutOf(action, certificates), why: action.why }];
}

function aboutOf(action: CertificateAction, { service, secret }: CertificateDeps): About {
  if (action.action !== 'TrustAuthorities') return { kind: 'Secret', namespace: service.namespace, name: secret };
  const { resource, object } = action.hook;
  return { kind: resource.kind, namespace: '', name: object.metadata.name };
}

/** A certificate of somebody else is not ours to renew, but to warn about in the last tenth of its life. */
function tell({ clock, log, metrics }: Keeper, { secret }: View, { service, secret: name }: CertificateDeps): void {
  const serving: Certificate | undefined = secret.state === 'absent' ? undefined : secret.serving;
  if (serving === undefined) return;
  const { from, until } = serving;
  metrics.set('gateway_operator_certificate_expiry_timestamp_seconds', until / 1000);
  const isNear = until - clock.now() < (until - from) / 10;
  if (secret.state !== 'foreign' || secret.by === 'cert-manager' || !isNear) return;
  const what = `Secret ${service.namespace}/${name} is not ours, and its certificate ends`;
  log.warn(`${what}: delete it, and reconcile issues one and renews it`, { until: new Date(until).toISOString() });
}
