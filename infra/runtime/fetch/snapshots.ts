// Snapshots in Workers KV, by the path of their instance: the reconciler writes them, gateways read them.
import type { SnapshotStore } from '#core/ports/snapshot-store.ts';
import type { KeyValueNamespace } from '../config/bindings.ts';

export function createSnapshotStore(namespace: KeyValueNamespace): SnapshotStore {
  return {
    get: async (path) => (await namespace.get(path)) ?? undefined,
    put: (path, text) => namespace.put(path, text),
    delete: (path) => namespace.delete(path),
  };
}
