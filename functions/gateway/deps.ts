// Dependencies of the gateway: everything arrives from the platform; nothing is global.

import type { Snapshot } from '#core/models/snapshot.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Ids } from '#core/ports/ids.ts';
import type { Ledger } from '#core/ports/ledger.ts';
import type { Hash, Mac, ProcessMemory, Random, Timer } from '#core/ports/platform.ts';
import type { Policies } from '#core/ports/policy.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';
import type { Credentials, Upstream } from '#core/ports/upstream.ts';

export interface GatewayDependencies {
  /** The compiled instance of this gateway; undefined until the first snapshot has arrived. */
  readonly snapshots: { current(): Snapshot | undefined };
  readonly credentials: Credentials;
  readonly policies: Policies;
  readonly ledger: Ledger;
  /**
   * Whether another version of the operator wrote what the ledger needs, so that it cannot start. `GET /readyz` asks.
   */
  readonly hasVersionMismatch?: () => boolean;
  readonly upstream: Upstream;
  readonly clock: Clock;
  /** A clock for the intervals of cooldowns, which is never set. Default: `clock`. */
  readonly intervalClock?: Clock | undefined;
  readonly ids: Ids;
  readonly hash: Hash;
  readonly mac: Mac;
  readonly random: Random;
  readonly timer: Timer;
  /** The memory of the process; absent: unlimited. */
  readonly memory?: ProcessMemory | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
}
