// Shares of a run by namespace: the number of changed VirtualKeys, and the Secrets of unchanged ones that are read.
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import type { Limits } from '../limits.ts';
import { countByNamespace, type RoundRobin, shareOut } from '../round-robin.ts';

/** The number of runs in which each Secret of an unchanged VirtualKey is read once. More runs if `secrets` is small. */
const SECRET_RUNS = 60;

export interface KeyShares {
  /** Whether this run may process one more changed VirtualKey of the namespace. */
  takeChanged(namespace: string): boolean;
  /** The share, from 0 to 1, of a namespace's unchanged VirtualKeys whose Secrets are read. */
  secretsOf(namespace: string): number;
}

/**
 * `keys`: all VirtualKeys that the run may process. Tenants decide how many there are, and on how many instances.
 */
export function createKeyShares(
  keys: Iterable<VirtualKey>,
  { changedKeys, secrets }: Pick<Limits, 'changedKeys' | 'secrets'>,
  roundRobin: RoundRobin,
): KeyShares {
  const counts = countByNamespace(keys);
  // Half is divided among the namespaces, those with few VirtualKeys first, so that VirtualKeys that change all the
  // time leave room for others.
  const half = Math.floor(changedKeys / 2);
  const { rows, advance } = roundRobin.take('namespaces', [...counts], half, ([namespace]) => ({ namespace, id: '' }));
  advance();
  const reserved = new Map([...shareOut(half, new Map(rows))].map(([one, share]) => [one, Math.floor(share)]));
  let free = changedKeys - reserved.values().reduce((sum, share) => sum + share, 0);
  const all = counts.values().reduce((sum, count) => sum + count, 0);
  const runs = all <= secrets ? 1 : SECRET_RUNS;
  const read = shareOut(secrets, new Map([...counts].map(([one, count]) => [one, count / runs])));
  return {
    takeChanged: (namespace) => {
      const own = reserved.get(namespace) ?? 0;
      if (own > 0) reserved.set(namespace, own - 1);
      else free -= 1;
      return own > 0 || free >= 0;
    },
    secretsOf: (namespace) => (read.get(namespace) ?? 0) / (counts.get(namespace) ?? 1),
  };
}
