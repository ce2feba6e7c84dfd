// Snapshot stores, from which gateways outside the cluster read the snapshots of their instances.

/** Texts by the path of an instance, `namespace/name`. Each call rejects if the store does not answer. */
export interface SnapshotStore {
  /** Undefined: the instance has no snapshot. The text may be a minute old. */
  get(path: string): Promise<string | undefined>;
  put(path: string, text: string): Promise<void>;
  delete(path: string): Promise<void>;
}
