// Who is next when live holds end? Those who wait for a scope, first come first, each waking the one behind it.
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { ScopeId, ScopeWindow } from '../ports/policy.ts';

/** One request's place in a queue. It keeps its place while it tries, and has none before it first waits. */
export interface Place {
  scopeId: ScopeId | undefined;
  /** Set while it sleeps. */
  wake: (() => void) | undefined;
}

export interface Waiting {
  place(): Place;
  /** Until something of the scope is freed and it is this one's turn, or so much time has passed. */
  wait(place: Place, scopeId: ScopeId, millis: Millis): Promise<void>;
  /** It goes, with its money or without: the next one may try. */
  leave(place: Place): void;
  /** Something that these scopes held is free. One sleeper each is woken; a thousand that try at once would only be in each other's way. */
  freed(charges: ReadonlyArray<ScopeWindow>): void;
}

export function createWaiting(timer: Timer): Waiting {
  const queues = new Map<ScopeId, Set<Place>>();

  const enqueue = (place: Place, scopeId: ScopeId): void => {
    if (place.scopeId === scopeId) return;
    dequeue(place);
    place.scopeId = scopeId;
    const queue = queues.get(scopeId) ?? new Set();
    queues.set(scopeId, queue.add(place));
  };
  const dequeue = (place: Place): void => {
    if (place.scopeId === undefined) return;
    const queue = queues.get(place.scopeId);
    queue?.delete(place);
    if (queue?.size === 0) queues.delete(place.scopeId);
    place.scopeId = undefined;
  };
  const wakeFirst = (scopeId: ScopeId): void => {
    for (const { wake } of queues.get(scopeId) ?? []) {
      if (wake === undefined) continue;
      wake();
      return;
    }
  };

  return {
    place: () => ({ scopeId: undefined, wake: undefined }),
    wait(place, scopeId, millis) {
      enqueue(place, scopeId);
      return new Promise((resolve) => {
        const cancel = timer(millis, () => place.wake?.());
        place.wake = () => {
          place.wake = undefined;
          cancel();
          resolve();
        };
      });
    },
    leave(place) {
      const { scopeId } = place;
      dequeue(place);
      if (scopeId !== undefined) wakeFirst(scopeId);
    },
    freed(charges) {
      if (queues.size === 0) return;
      for (const { scopeId } of charges) wakeFirst(scopeId);
    },
  };
}
