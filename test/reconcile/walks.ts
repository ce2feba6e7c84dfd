// Which calls does reconcile make at all? Everything it does once, on a real API server; what failed of it.
import { createIssuer } from '#adapters/certificates/issuer.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { keepCertificate, LIFETIMES } from '../../functions/reconcile/certificates/renewal.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { silentLog } from '../support/silent-log.ts';
import type { Harness } from './harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from './objects.ts';

export interface WalksDependencies {
  readonly harness: Harness;
  readonly admin: Cluster;
  /** As reconcile. */
  readonly reconciles: Cluster;
}

/** Each answers what failed, and walks no further after so many failures. */
export interface Walks {
  /** Every kind of action once, and the certificate. */
  keys(enough?: number): Promise<ReadonlyArray<string>>;
  /** Whatever runs gateways, made, changed and removed. */
  workloads(enough?: number): Promise<ReadonlyArray<string>>;
}

export function createWalks({ harness, admin, reconciles }: WalksDependencies): Walks {
  const keep = async (failed: string[]) => {
    const { clock } = nodeDependencies();
    const metrics = {
      add: () => undefined,
      set: () => undefined,
      retain: async () => undefined,
      observe: () => undefined,
    };
    const service = { namespace: 'gateway-operator', name: 'admission' };
    const kept = await keepCertificate(
      { cluster: reconciles, clock, log: silentLog, metrics },
      {
        issuer: createIssuer(),
        service,
        lifetimes: LIFETIMES,
      },
    );
    if (kept.failed !== undefined) failed.push(kept.failed);
  };

  async function* keys(failed: string[]): Steps {
    const run = async (asked: Promise<{ failed: object }>) =>
      failed.push(
        ...(await asked.then(
          (report) => Object.keys(report.failed),
          (error: Error) => [error.message],
        )),
      );
    await harness.apply(
      ...makeSecrets(),
      makeInstance(),
      makeTeam(),
      makeUser({ teamRefs: [{ name: 'research' }] }),
      makeKey(),
    );
    yield run(harness.resync());
    for (const [kind, name] of [
      ['GatewayInstance', 'main'],
      ['VirtualKey', 'chat'],
      ['User', 'alice'],
      ['Team', 'research'],
    ] as const) {
      yield run(harness.trigger(kind, name));
    }
    for (const [kind, name] of [
      [gatewayInstances, 'main'],
      [virtualKeys, 'chat'],
      [users, 'alice'],
    ] as const) {
      const ready = await harness.ready(kind, name);
      if (ready !== 'True Ready') failed.push(`${kind.kind} ${name}: ${ready}`);
    }
    await harness.edit(virtualKeys, 'chat', {
      spec: {
        secretTemplate: { labels: { app: 'chat' } },
        userRef: { name: 'alice' },
        teamRef: { name: 'research' },
      },
    });
    await harness.edit(users, 'alice', { spec: { maxBudget: '26' } });
    yield run(harness.trigger('VirtualKey', 'chat'));
    yield run(harness.resync());
    await harness.edit(users, 'alice', { spec: { keyAlias: 'renamed' } });
    const selector = { matchLabels: { 'kubernetes.io/metadata.name': 'default' } };
    const logged = harness.log.lines.length;
    for (const retries of [1, 3, 4]) {
      await harness.edit(gatewayInstances, 'main', {
        spec: { routing: { retries }, allowedNamespaces: { from: 'Selector', selector } },
      });
      yield run(harness.resync());
    }
    // A namespace that cannot be read fails nothing: only the log has it.
    const messages = harness.log.lines.slice(logged).map(({ message }) => message);
    failed.push(...messages.filter((message) => message === 'a namespace cannot be read'));
    for (const [kind, name] of [
      [virtualKeys, 'chat'],
      [users, 'alice'],
      [teams, 'research'],
      [gatewayInstances, 'main'],
    ] as const) {
      await harness.remove(kind, name);
      yield run(harness.resync());
    }
    if (failed.length === 0) await keep(failed);
  }

  async function* workloads(failed: string[]): Steps {
    harness.servedAt = 'nobody';
    await harness.apply(...makeSecrets(), makeSecret('store', { host: 'redis', port: '6379', password: '' }));
    const httpRoute = { parentRefs: [{ name: 'public' }], hostnames: ['llm.example.com'] };
    const ingress = { host: 'llm.example.com' };
    for (const { routes, ...workload } of [
      { type: 'Deployment', scale: { min: 1, max: 2 }, routes: { httpRoute } },
      { type: 'Deployment', scale: { min: 1, max: 1 }, image: 'example.com/own:1', routes: { ingress } },
      { type: 'External', url: 'https://llm.example.com' },
      { type: 'Knative' },
      { type: 'External', url: 'https://llm.example.com' },
    ]) {
      const none = { httpRoute: null, ingress: null };
      const spec = { workload: { url: null, scale: null, image: null, ...workload }, ...none, ...routes };
      await harness.apply(makeInstance(spec));
      failed.push(...Object.keys((await harness.resync()).failed));
      const { conditions = [] } = await harness.status(gatewayInstances, 'main');
      failed.push(...conditions.map(({ reason }) => reason).filter((reason) => reason === 'WorkloadUnreadable'));
      yield;
    }
    for (const part of Object.values(WORKLOAD_OBJECTS)) {
      const left = await admin.list(part, { namespace: 'default' });
      failed.push(
        ...left.filter(({ metadata }) => metadata.name.startsWith('main-')).map(({ kind }) => `${kind} left`),
      );
    }
  }

  return {
    keys: (enough) => walk(keys, enough),
    workloads: (enough) => walk(workloads, enough),
  };
}

type Steps = AsyncGenerator<unknown>;

async function walk(
  steps: (failed: string[]) => Steps,
  enough = Number.POSITIVE_INFINITY,
): Promise<ReadonlyArray<string>> {
  const failed: string[] = [];
  for await (const _ of steps(failed)) if (failed.length >= enough) break;
  return failed;
}
