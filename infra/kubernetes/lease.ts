// Who listens now? The Lease names the latest process that does; the one before sees its name replaced, and ends.
import type { KubeTransport } from '#adapters/kubernetes/transport.ts';
import { watch } from '#adapters/kubernetes/watch.ts';
import type { Clock, Log } from '#core/ports/clock.ts';
import type { Cluster, KubeObject, Resource } from '#core/ports/cluster.ts';

export const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' };

export interface LeaseDependencies {
  readonly cluster: Cluster;
  readonly request: KubeTransport;
  readonly clock: Clock;
  readonly log: Log;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Unlike that of any other process. */
  readonly holder: string;
  /** How long a process listens at most: what the Lease says of its duration. */
  readonly seconds: number;
}

/** Somebody may take it in the same moment; so often it is tried anew. */
const MOST_TRIES = 5;

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseTransitions?: number;
}

const specOf = ({ spec }: KubeObject): LeaseSpec => (spec ?? {}) as LeaseSpec;

/**
 * Takes it from whoever has it: the newest wins, nobody asks whether the other still lives. Answers its version as we wrote
 * it, or undefined where that is not allowed or not possible: then nobody is told, everybody listens until the time is over,
 * and some changes are looked at twice.
 */
export async function takeLease(deps: LeaseDependencies): Promise<string | undefined> {
  const { cluster, lease } = deps;
  try {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const there = await cluster.get(LEASES, lease.namespace, lease.name);
      const written =
        there === undefined
          ? await cluster.create(LEASES, { ...toLease(deps, 0), metadata: { ...lease } })
          : await cluster.patch(LEASES, lease.namespace, lease.name, {
              metadata: { resourceVersion: there.metadata.resourceVersion },
              spec: toLease(deps, (specOf(there).leaseTransitions ?? 0) + 1).spec,
            });
      if (written.ok) return written.object.metadata.resourceVersion;
      if (!['exists', 'conflict', 'gone'].includes(written.refusal)) return notTaken(deps, written.message);
    }
  } catch (error) {
    return notTaken(deps, String(error));
  }
  return undefined;
}

function notTaken({ lease, log }: LeaseDependencies, why: string): undefined {
  log.warn('the Lease cannot be taken: the run before this one listens until its time is over', { lease, why });
}

/** Resolves once the Lease, which was ours at that version, names somebody else, or when the signal aborts. */
export async function succeeded(deps: LeaseDependencies, since: string, signal: AbortSignal): Promise<void> {
  const { request, lease, holder } = deps;
  const found = new AbortController();
  await watch(request, {
    resource: LEASES,
    namespace: lease.namespace,
    fieldSelector: `metadata.name=${lease.name}`,
    resourceVersion: since,
    signal: AbortSignal.any([signal, found.signal]),
    onEvent: ({ type, object }) => {
      if (type !== 'DELETED' && specOf(object).holderIdentity !== holder) found.abort();
    },
  });
}

function toLease({ clock, holder, seconds }: LeaseDependencies, leaseTransitions: number) {
  // Six digits: a Lease counts in microseconds.
  const now = new Date(clock.now()).toISOString().replace('Z', '000Z');
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: seconds,
      acquireTime: now,
      renewTime: now,
      leaseTransitions,
    },
  };
}
