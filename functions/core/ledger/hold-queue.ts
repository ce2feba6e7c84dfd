// The queue of requests that live holds are in the way of: those in front ask the store again, for all behind them (decision 0028).
import type { Millis, Nano } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { ScopeId, ScopeWindow } from '../ports/policy.ts';

/** One request in a queue. It keeps its place while it tries, and has none before it first waits. */
export interface Place {
  /** What it asks for. */
  readonly amount: Nano;
  scopeId: ScopeId | undefined;
  /** Set while it sleeps. */
  wake: (() => void) | undefined;
}

export interface Waiting {
  place(amount: Nano): Place;
  /** Until it is this request's turn because something of the scope may be free, or so much time has passed. */
  wait(place: Place, scopeId: ScopeId, millis: Millis): Promise<void>;
  /** It leaves, with its money or without: so many times the request in front then may try. */
  leave(place: Place, next: number): void;
  /** Something that these scopes held is free. A thousand that try at once would only be in each other's way. */
  freed(charges: ReadonlyArray<ScopeWindow>): void;
}

interface Line {
  /** In the order in which they came. */
  readonly places: Set<Place>;
  cancel: () => void;
}

/** Another process may have freed something without our knowing. */
const CHECK_AGAIN_AFTER: Millis = 100;

export function createWaiting(timer: Timer): Waiting {
  const lines = new Map<ScopeId, Line>();

  const open = (scopeId: ScopeId): Line => {
    const lookAgain = (): void => {
      line.cancel = timer(CHECK_AGAIN_AFTER, lookAgain);
      wakeFront(line);
    };
    const line = { places: new Set<Place>(), cancel: timer(CHECK_AGAIN_AFTER, lookAgain) };
    lines.set(scopeId, line);
    return line;
  };
  const enqueue = (place: Place, scopeId: ScopeId): void => {
    if (place.scopeId === scopeId) return;
    // Another scope is in its way now. Whether this one still is, the next will find out.
    dequeue(place, 1);
    place.scopeId = scopeId;
    (lines.get(scopeId) ?? open(scopeId)).places.add(place);
  };
  const dequeue = (place: Place, next: number): void => {
    const { scopeId } = place;
    const line = scopeId === undefined ? undefined : lines.get(scopeId);
    if (scopeId === undefined || line === undefined) return;
    place.scopeId = undefined;
    line.places.delete(place);
    for (let count = 0; count < next; count += 1) wakeFront(line);
    if (line.places.size > 0) return;
    line.cancel();
    lines.delete(scopeId);
  };

  return {
    place: (amount) => ({ amount, scopeId: undefined, wake: undefined }),
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
    leave: dequeue,
    freed(charges) {
      if (lines.size === 0) return;
      for (const { scopeId } of charges) {
        const line = lines.get(scopeId);
        if (line !== undefined) wakeFront(line);
      }
    },
  };
}

/** In front is each request that asks for less than all before it: what does not suffice for it does not for those behind it. */
function wakeFront({ places }: Line): void {
  let min: Nano | undefined;
  for (const { amount, wake } of places) {
    // A request that does not sleep is asking already, perhaps too early.
    if (wake === undefined || (min !== undefined && amount >= min)) continue;
    min = amount;
    wake();
  }
}
