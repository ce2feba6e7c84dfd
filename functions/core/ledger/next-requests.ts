// Requests for the next call to the counter store: those of a namespace in order of arrival, the namespaces in turn, so
// that requests of one tenant do not delay those of others.

import type { WaitingRequest } from './counters.ts';

export type NextRequests = ReturnType<typeof createNextRequests>;

export function createNextRequests() {
  /** By namespace; the namespace whose request was the last one in a call is at the end. */
  const requests = new Map<string, Set<WaitingRequest>>();
  return {
    isEmpty: (): boolean => requests.size === 0,
    add(request: WaitingRequest): void {
      const own = requests.get(request.namespace);
      if (own === undefined) requests.set(request.namespace, new Set([request]));
      else own.add(request);
    },
    delete(request: WaitingRequest): void {
      const own = requests.get(request.namespace);
      own?.delete(request);
      if (own?.size === 0) requests.delete(request.namespace);
    },
    /** Requests may be added and deleted meanwhile. */
    *inTurn(): Iterable<WaitingRequest> {
      const namespaces = [...requests].map(([namespace, own]) => ({ namespace, own, values: own.values() }));
      for (const next of namespaces) {
        const { namespace, own, values } = next;
        const { value } = values.next();
        if (value === undefined) continue;
        namespaces.push(next);
        try {
          yield value;
        } finally {
          // A namespace keeps its turn until a request of it is in a call.
          if (value.isInCall && requests.get(namespace) === own) {
            requests.delete(namespace);
            requests.set(namespace, own);
          }
        }
      }
    },
  };
}
