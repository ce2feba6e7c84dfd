// The course of a schedule: its requests, its faults, and their observed outcomes for the verification at the end.
import type { Hold } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import type { Gateway, Shared } from './gateway.ts';

export interface Wish {
  /** The process that gets the request; another one if it is dead. */
  readonly by: number;
  readonly scopes: ReadonlyArray<number>;
  readonly amount: bigint;
  readonly cost: bigint;
  /** `both`: settled, then released as well. `never`: left in flight until its process dies. */
  readonly end: 'settle' | 'release' | 'both' | 'never';
  /** The streamed cost, where progress reports it. */
  readonly known?: bigint;
}

/**
 * `lose`: a call or an answer is lost. `die`: kill -9, the disk survives. `vanish`: kill -9, and the disk is lost too.
 * `freeze` and `sleep`: a process is paused, for longer than a rebuild waits and than a lease. `hang`: the store or
 * PostgreSQL does not answer, and runs its calls late.
 */
export type Fault = 'lose' | 'wipe' | 'restore' | 'die' | 'vanish' | 'freeze' | 'hang' | 'sleep';

export interface Scene {
  readonly limits: ReadonlyArray<bigint>;
  readonly wishes: ReadonlyArray<Wish>;
  readonly gateways: number;
  /** The number of times each fault may happen. */
  readonly faults: Partial<Record<Fault, number>>;
}

export interface Request extends Wish {
  readonly name: string;
  stage: 'new' | 'asked' | 'held' | 'refused' | 'unavailable' | 'ending' | 'settled' | 'released';
  gateway: Gateway | undefined;
  hold: Hold | undefined;
}

export interface Course {
  readonly scene: Scene;
  readonly shared: Shared;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  readonly requests: ReadonlyArray<Request>;
  /** All processes, dead ones included. */
  readonly gateways: Gateway[];
  /** Processes that missed a rebuild. */
  readonly slept: Set<string>;
  readonly struck: Map<Fault, number>;
  /** Whether an old snapshot is in use and not detected. */
  isStale: boolean;
  /** Requests sent meanwhile. */
  readonly admittedStale: Set<Request>;
  readonly vanished: Set<Gateway>;
  /** The time of the last step of a client. */
  lastDeed: Millis;
  /** Ends every hold that is left. */
  isLast: boolean;
}
