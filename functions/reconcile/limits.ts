// Limits of a run, so that its time, memory and requests stay bounded. The next runs do what a run leaves.

const MIB = 1024 * 1024;

export interface Limits {
  /** Parts of the world, usually an instance with its scope objects. */
  readonly parts: number;
  /** VirtualKeys that have changed. */
  readonly changedKeys: number;
  /** Secrets of unchanged VirtualKeys. If there are at most this many VirtualKeys, a run reads all their Secrets. */
  readonly secrets: number;
  /**
   * Objects that only databases name and that are looked up in the cluster, for all instances together; of VirtualKeys
   * that are gone also the Secrets.
   */
  readonly lookUps: number;
  /**
   * Bytes that VirtualKeys, Users and Teams of one namespace may take in a resync, beyond those of ordinary objects.
   */
  readonly objectBytes: number;
  /** Triggers that run concurrently. */
  readonly triggers: number;
  /** Concurrent triggers for instances that were slow the last time. */
  readonly slowTriggers: number;
  /** Resyncs that run concurrently. */
  readonly resyncs: number;
}

/**
 * Limits of a process, which may send any number of requests. Of hundreds of objects that are applied together,
 * the first are ready while the last wait, and memory stays small. A database that hangs keeps a slot until its calls
 * time out, so slow instances have slots of their own. One resync runs at a time, because memory has room for one. A
 * resync waits for no trigger.
 */
export const PROCESS_LIMITS: Limits = {
  parts: Number.POSITIVE_INFINITY,
  changedKeys: 5000,
  secrets: 500,
  lookUps: 5000,
  objectBytes: 64 * MIB,
  triggers: 32,
  slowTriggers: 16,
  resyncs: 1,
};

/**
 * Limits of a run on a platform that bounds the requests of a run and may end the run at any time, so no run waits for
 * another. An instance takes 15 requests, and 40 the first time; a new VirtualKey 20, an unchanged one 1.
 */
export const limitsFor = (requests: number): Limits => ({
  parts: Math.max(1, Math.floor(requests / 100)),
  changedKeys: Math.max(1, Math.floor(requests / 40)),
  secrets: Math.max(1, Math.floor(requests / 5)),
  lookUps: Math.max(1, Math.floor(requests / 20)),
  objectBytes: 16 * MIB,
  triggers: Number.POSITIVE_INFINITY,
  slowTriggers: Number.POSITIVE_INFINITY,
  resyncs: Number.POSITIVE_INFINITY,
});
