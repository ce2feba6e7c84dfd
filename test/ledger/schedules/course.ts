// Course of a schedule: what is asked for, what may go wrong, and what is known of both for the verification at the end.
import type { Hold } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import type { Gateway, Shared } from './gateway.ts';

export interface Wish {
  /** Which process is asked; another one if that is dead. */
  readonly by: number;
  readonly scopes: ReadonlyArray<number>;
  readonly amount: bigint;
  readonly cost: bigint;
  /** `both`: settled, and then released all the same. `never`: it is left under way until its process dies. */
  readonly end: 'settle' | 'release' | 'both' | 'never';
  /** What was streamed of it, where somebody says so. */
  readonly known?: bigint;
}

/**
 * `lose`: a call or an answer is lost. `die`: kill -9, the disk is there again. `vanish`: kill -9, and the disk is gone with
 * it. `freeze` and `sleep`: a process stands still, for longer than a rebuild waits and than a lease. `silence`: of store or
 * PostgreSQL, which then do late what they were asked.
 */
export type Fault = 'lose' | 'wipe' | 'restore' | 'die' | 'vanish' | 'freeze' | 'silence' | 'sleep';

export interface Scene {
  readonly limits: ReadonlyArray<bigint>;
  readonly wishes: ReadonlyArray<Wish>;
  readonly gateways: number;
  /** How often each may happen. */
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
  /** All that ever lived. */
  readonly gateways: Gateway[];
  /** Processes that were not there when the store was rebuilt. */
  readonly slept: Set<string>;
  readonly struck: Map<Fault, number>;
  /** An old snapshot is there, and nobody has noticed. */
  isStale: boolean;
  /** Asked for meanwhile. */
  readonly admittedStale: Set<Request>;
  readonly vanished: Set<Gateway>;
  /** When a client did something last. */
  lastDeed: Millis;
  /** Whoever still holds something ends it. */
  isLast: boolean;
}
