// Expiry of Events.
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';

const stored = '/events';
const lifetime = 3_600_000;
const checkEvery = 60_000;

/** An hour after it was last seen, as the real server keeps them. */
export function createEventExpiry({ store, now }: Deps): { start(): void; stop(): Promise<void> } {
  let ticking: NodeJS.Timeout | undefined;

  function sweep(): void {
    for (const object of store.list(stored).filter((event) => now() - lastSeen(event) > lifetime)) {
      const { namespace = '', name = '', resourceVersion: from = '' } = object.metadata;
      store.write({ do: 'delete', resource: stored, namespace, name, object, from });
    }
  }

  return {
    start() {
      ticking = setInterval(() => {
        try {
          sweep();
        } catch {} // every request reports a file that cannot be written; the next sweep tries again
      }, checkEvery);
      ticking.unref();
    },
    async stop() {
      clearInterval(ticking);
    },
  };
}

function lastSeen({ lastTimestamp, eventTime, metadata }: KubeObject): number {
  return Date.parse(String(lastTimestamp ?? eventTime ?? metadata.creationTimestamp));
}
