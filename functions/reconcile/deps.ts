// Dependencies of the reconciler. The platform provides all of them.
import type { Backends } from '#core/ports/backends.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import type { Ids } from '#core/ports/ids.ts';
import type { Hash, Platform, Random, Timer } from '#core/ports/platform.ts';
import type { SnapshotStore } from '#core/ports/snapshot-store.ts';
import type { EndingMetrics, Log } from '#core/ports/telemetry.ts';
import type { CertificateDependencies } from './certificates/objects.ts';
import type { Limits } from './limits.ts';

export interface ReconcileDependencies {
  readonly cluster: Cluster;
  readonly backends: Backends;
  readonly platform: Platform;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly hash: Hash;
  readonly random: Random;
  readonly timer: Timer;
  readonly log: Log;
  readonly metrics: EndingMetrics;
  /** Absent: something else provides the certificate of the admission webhook. */
  readonly certificates?: CertificateDependencies;
  /** Absent: all gateways run in the cluster and mount their snapshots. */
  readonly snapshots?: SnapshotStore;
  /** Sentences about what is missing; none: the function is ready. Absent: always ready. */
  readonly readiness?: (() => Promise<ReadonlyArray<string>>) | undefined;
  /** Absent: the limits of a process. */
  readonly limits?: Limits;
}
