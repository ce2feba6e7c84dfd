// Keys applied one after the other, and watched until each works.
import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import { users, virtualKeys } from '#crds/kinds/kinds.ts';
import { put } from '../../../infra/packaging/manifests/apply.ts';
import { watch } from '../../support/watch.ts';

export interface Ground {
  readonly kubeconfig: string;
  readonly cluster: Cluster;
}

/**
 * Milliseconds between keys. Knative's adapter posts events one by one, our own writes too: with a shorter pause its
 * queue is measured.
 */
const EVERY = 1_000;
const TIMEOUT = 30_000;

const connectionRef = { instanceRef: { name: 'sample', namespace: 'default' } };
const budget = { maxBudget: '1', budgetDuration: '30d' };

export const makeKey = (name: string): KubeObject => ({
  apiVersion: virtualKeys.apiVersion,
  kind: 'VirtualKey',
  metadata: { name, namespace: 'default' },
  spec: { keyAlias: name, ...budget, connectionRef },
});

/** A User; its key has the same name. */
export const makeUser = (name: string): KubeObject => ({
  apiVersion: users.apiVersion,
  kind: 'User',
  metadata: { name, namespace: 'default' },
  spec: { userEmail: `${name}@example.com`, autoCreateKey: true, keyAlias: name, ...budget, connectionRef },
});

/** The waits in milliseconds; fails when a key is not usable in time. The first few are left out: processes warm up. */
export async function measure(
  { kubeconfig, cluster }: Ground,
  count: number,
  make: (name: string) => KubeObject,
): Promise<number[]> {
  const applied = new Map<string, number>();
  const waits = new Map<string, number>();
  const stop = await watch(kubeconfig, {
    resource: virtualKeys,
    onEvent: (object) => {
      const { name } = object.metadata;
      const at = applied.get(name);
      const isActive = (object.status as { isActive?: boolean } | undefined)?.isActive === true;
      if (isActive && at !== undefined && !waits.has(name)) waits.set(name, performance.now() - at);
    },
  });
  const warmUp = 5;
  for (let index = 0; index < count + warmUp; index += 1) {
    const name = `m${index}`;
    applied.set(name, performance.now());
    await put(cluster, make(name), true);
    await pause(EVERY);
  }
  for (const until = Date.now() + TIMEOUT; waits.size < applied.size; await pause(50)) {
    if (Date.now() > until) throw new Error(`of ${applied.size} keys only ${waits.size} were usable in time`);
  }
  stop();
  return [...applied.keys()].slice(warmUp).map((name) => waits.get(name) ?? Number.NaN);
}

/** The quantile: the smallest value that is at least as large as this share of them. */
export function quantile(values: ReadonlyArray<number>, share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
