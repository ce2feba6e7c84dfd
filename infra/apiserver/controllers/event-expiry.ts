// Expiry of Events.
import type { Deps } from '../deps.ts';
import type { KubeObject } from '../object.ts';
import { type Controller, createController } from './work-queue.ts';

const stored = '/events';
const lifetime = 3_600_000;

/** Deletes an Event an hour after it was last seen, as the real server does. */
export function createEventExpiry(deps: Deps): Controller {
  const { store, now } = deps;
  return createController(deps, {
    name: 'expiry of Events',
    concerned: ({ resource, namespace, name }) => (resource === stored ? [{ resource, namespace, name }] : []),
    async work(key, add) {
      const object = store.get(key);
      if (object === undefined) return;
      const left = lastSeen(object) + lifetime - now();
      if (left > 0) add(key, left);
      else store.write({ do: 'delete', ...key, object, from: object.metadata.resourceVersion ?? '' });
    },
  });
}

function lastSeen({ lastTimestamp, eventTime, metadata }: KubeObject): number {
  return Date.parse(String(lastTimestamp ?? eventTime ?? metadata.creationTimestamp));
}
