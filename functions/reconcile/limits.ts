// Limits of a run: how much it looks at, so that time, memory and requests stay bounded. The rest comes with the next
// runs.

const MIB = 1024 * 1024;

export interface Limits {
  /** Parts of the world, mostly an instance with its members. */
  readonly parts: number;
  /** Keys that have changed. */
  readonly changedKeys: number;
  /** Secrets of keys that have not changed: up to so many keys a run reads all of them. */
  readonly secrets: number;
  /** Objects that databases alone name: those of all instances together, in each look at them. */
  readonly suspects: number;
  /** Bytes that VirtualKeys, Users and Teams of one namespace may take in a resync, beyond those of ordinary ones. */
  readonly objectBytes: number;
  /** Triggers that are followed at the same time. */
  readonly triggers: number;
  /** The same, of instances that were slow the last time. */
  readonly slowTriggers: number;
  /** Resyncs that run at the same time. */
  readonly resyncs: number;
}

/**
 * Limits of a process, which may ask as often as it wants. Of hundreds of objects that are applied at the same time,
 * the first are ready while the last wait, and memory stays small. A database that hangs keeps a place for the time
 * limit of its calls: slow instances have places of their own. One resync runs at a time: the memory of a process is that of one. It waits for no trigger.
 */
export const PROCESS_LIMITS: Limits = {
  parts: Number.POSITIVE_INFINITY,
  changedKeys: 5000,
  secrets: 500,
  suspects: 5000,
  objectBytes: 64 * MIB,
  triggers: 32,
  slowTriggers: 16,
  resyncs: 1,
};

/**
 * Limits of a run that may send so many requests, and may be ended at any time, so that none waits for another. An
 * instance takes 15, and 40 at first; a new key 20, one that has not changed 1.
 */
export const limitsFor = (requests: number): Limits => ({
  parts: Math.max(1, Math.floor(requests / 100)),
  changedKeys: Math.max(1, Math.floor(requests / 40)),
  secrets: Math.max(1, Math.floor(requests / 5)),
  suspects: Math.max(1, Math.floor(requests / 20)),
  objectBytes: 16 * MIB,
  triggers: Number.POSITIVE_INFINITY,
  slowTriggers: Number.POSITIVE_INFINITY,
  resyncs: Number.POSITIVE_INFINITY,
});
