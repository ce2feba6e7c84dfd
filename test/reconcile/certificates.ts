// What does a test of admission's certificate stand on? A cluster in memory, real certificates, and somebody who
// watches.

import { createIssuer } from '#adapters/certificates/issuer.ts';
import { type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import type { CertificateAndKey, Issuer, ServingCertificate } from '#core/ports/issuer.ts';
import { createReconciler } from '../../functions/reconcile/app.ts';
import {
  CERTIFICATE_SECRET,
  type CertificateDependencies,
  type CertificateView,
  observeCertificate,
  WEBHOOK_CONFIGURATIONS,
} from '../../functions/reconcile/certificates/objects.ts';
import {
  type CertificateReport,
  keepCertificate,
  LIFETIMES,
  planCertificate,
} from '../../functions/reconcile/certificates/renewal.ts';
import { IN_CLUSTER, webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { backendsOf } from '../doubles/backends.ts';
import { createMemoryCluster, type MemoryCluster } from '../doubles/cluster.ts';
import { createMemoryLog, type MemoryLog } from '../doubles/log.ts';

export const START = Date.parse('2026-11-21T12:00:00Z');
export const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
export const NAMESPACE = 'gateway-operator';
/** A Pod may show so long what lay in the Secret: the kubelet takes two minutes. */
const SHOWN = HOUR;
export const HOST = 'admission.gateway-operator.svc';

export interface CertificateHarness {
  readonly cluster: MemoryCluster;
  readonly log: MemoryLog;
  readonly issuer: Issuer;
  readonly terms: CertificateDependencies;
  readonly clock: { now(): number; pass(millis: number): void };
  /** How many serving certificates were issued. */
  issued(): number;
  resync(terms?: CertificateDependencies): Promise<CertificateReport>;
  /** The whole function: a resync, a trigger, a dry run. Nothing else is in its cluster. */
  post(query?: string, init?: RequestInit): Promise<string>;
  plan(): ReturnType<typeof planCertificate>;
  view(): Promise<CertificateView>;
  /** Both configurations, as they are applied first. */
  applyHooks(): Promise<void>;
  hook(index: 0 | 1): KubeObject;
  editHook(index: 0 | 1, edit: (entry: Entry) => Entry): Promise<void>;
  secret(): KubeObject | undefined;
  /** What the Secret serves; undefined where that is no pair. */
  serving(): ServingCertificate | undefined;
  editSecret(patch: Readonly<Record<string, unknown>>): Promise<void>;
  removeSecret(): Promise<void>;
  /**
   * What API servers say of a Pod that shows what the Secret held a while ago: asked before every call, and here.
   * Empty: all is well.
   */
  complaints(): ReadonlyArray<string>;
  /** What was said so far was somebody else's doing. */
  forgive(): void;
  /** Called before each call to the cluster. */
  onCall: Parameters<MemoryCluster['inject']>[0];
}

export interface Entry {
  readonly name: string;
  readonly clientConfig: { readonly caBundle?: string; readonly [member: string]: unknown };
  readonly [member: string]: unknown;
}

const text = (base64: unknown): string => Buffer.from(String(base64 ?? ''), 'base64').toString();

export function createCertificateHarness(more: Partial<CertificateDependencies> = {}): CertificateHarness {
  let now = START;
  const clock = {
    now: () => now,
    pass: (millis: number) => {
      now += millis;
    },
  };
  const ids = { next: () => `00000000-0000-7000-8000-${String(cluster.calls.length).padStart(12, '0')}` };
  const cluster = createMemoryCluster({ clock, ids });
  const log = createMemoryLog();
  const metrics = { add: () => {}, set: () => {}, retain: async () => undefined, observe: () => {} };
  let issued = 0;
  const issuer = remembering(() => {
    issued += 1;
  });
  const terms: CertificateDependencies = {
    issuer,
    service: { namespace: NAMESPACE, name: 'admission' },
    lifetimes: LIFETIMES,
    ...more,
  };
  const nobody = () => {
    throw new Error('there is no database here');
  };
  const app = createReconciler({
    cluster,
    clock,
    ids,
    log,
    metrics,
    backends: backendsOf({
      database: nobody,
      probeStore: nobody,
      flush: nobody,
      maintain: async () => undefined,
      clearStore: nobody,
    }),
    platform: {
      servedAt: () => undefined,
      gatewayImage: 'gateway',
      version: '0.1.0',
      manyProcesses: false,
      inCluster: false,
    },
    hash: (text) => text,
    timer: () => () => undefined,
    random: (count) => new Uint8Array(count),
    certificates: terms,
  });
  const keeper = { cluster, clock, log, metrics };
  const secret = () => cluster.objects(RESOURCES.secrets).find(({ metadata }) => metadata.name === CERTIFICATE_SECRET);
  const hooks = () => WEBHOOK_CONFIGURATIONS.flatMap((resource) => cluster.objects(resource));
  const serving = (): ServingCertificate | undefined => {
    const data = (secret()?.data ?? {}) as Record<string, string>;
    const pair = { ca: text(data['ca.crt']), cert: text(data['tls.crt']), key: text(data['tls.key']) };
    return issuer.inspect(pair, [HOST]) === undefined ? undefined : pair;
  };

  /** CA of what lay in the Secret → until when a Pod may show it. */
  const shown = new Map<string, { pair: ServingCertificate; last: number }>();
  const complaints: string[] = [];
  let looked = '';
  const detector = () => {
    const versions = [secret(), ...hooks()].map((object) => object?.metadata.resourceVersion);
    const look = `${now} ${versions.join()}`;
    if (look === looked) return;
    looked = look;
    const pair = serving();
    if (pair !== undefined) shown.set(pair.ca, { pair, last: now });
    for (const [ca, { pair: seen, last }] of shown) {
      const reservations = issuer.inspect(seen, [HOST]);
      const isShown = reservations !== undefined && reservations.until > now && now - last < SHOWN;
      if (!isShown) {
        shown.delete(ca);
        continue;
      }
      for (const { kind, webhooks } of hooks()) {
        for (const { name, clientConfig } of (webhooks as Entry[]).filter(isOurs)) {
          if (issuer.split(text(clientConfig.caBundle)).includes(ca)) continue;
          complaints.push(`${new Date(now).toISOString()} ${kind} ${name} does not trust what Pods show`);
        }
      }
    }
  };

  const harness: CertificateHarness = {
    cluster,
    log,
    issuer,
    terms,
    clock,
    issued: () => issued,
    resync: (given = terms) => keepCertificate(keeper, given),
    post: async (query = '', init = {}) => (await app.request(`/${query}`, { method: 'POST', ...init })).text(),
    plan: () => planCertificate(keeper, terms),
    view: () => observeCertificate(cluster, terms),
    applyHooks: async () => {
      for (const [index, object] of webhookConfigurations(IN_CLUSTER).entries()) {
        await cluster.create(WEBHOOK_CONFIGURATIONS[index] as Resource, object);
      }
    },
    hook: (index) => {
      const [found] = cluster.objects(WEBHOOK_CONFIGURATIONS[index] as Resource);
      if (found === undefined) throw new Error('there is no such configuration');
      return found;
    },
    editHook: async (index, edit) => {
      const webhooks = (harness.hook(index).webhooks as Entry[]).map(edit);
      await cluster.patch(WEBHOOK_CONFIGURATIONS[index] as Resource, undefined, 'gateway-operator', { webhooks });
    },
    secret,
    serving,
    editSecret: async (patch) => {
      await cluster.patch(RESOURCES.secrets, NAMESPACE, CERTIFICATE_SECRET, patch);
    },
    removeSecret: async () => {
      await cluster.delete(RESOURCES.secrets, NAMESPACE, CERTIFICATE_SECRET, secret()?.metadata.uid ?? '');
    },
    complaints: () => {
      detector();
      return complaints;
    },
    forgive: () => {
      complaints.length = 0;
    },
    onCall: () => undefined,
  };
  cluster.inject((call) => {
    detector();
    return harness.onCall(call);
  });
  return harness;
}

const isOurs = ({ clientConfig }: Entry): boolean =>
  (clientConfig.service as { name?: string } | undefined)?.name === 'admission';

const real = createIssuer();
const authorities = new Map<string, Promise<CertificateAndKey>>();
const pairs = new Map<string, Promise<ServingCertificate>>();
const inspected = new Map<string, ReturnType<Issuer['inspect']>>();
const bundles = new Map<string, ReadonlyArray<string>>();

/**
 * Hundreds of harnesses live through the same hours: the n-th pair of an order is the same in each of them, and judged
 * once.
 */
function remembering(onIssue: () => void): Issuer {
  const orders = new Map<string, number>();
  const counted = (order: object) => {
    const text = JSON.stringify(order);
    const count = (orders.get(text) ?? 0) + 1;
    orders.set(text, count);
    return `${text} ${count}`;
  };
  return {
    issueAuthority: (order) => remembered(authorities, counted(order), () => real.issueAuthority(order)),
    issue: (order) => {
      onIssue();
      return remembered(pairs, counted(order), () => real.issue(order));
    },
    inspect: (pair, names) =>
      remembered(inspected, [pair.ca, pair.cert, pair.key, ...names].join('|'), () => real.inspect(pair, names)),
    split: (bundle) => remembered(bundles, bundle, () => real.split(bundle)),
  };
}

function remembered<T>(known: Map<string, T>, key: string, make: () => T): T {
  if (!known.has(key)) known.set(key, make());
  return known.get(key) as T;
}
