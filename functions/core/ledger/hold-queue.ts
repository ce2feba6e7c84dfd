// The queue of requests that wait for live holds: those in front ask the store again, on behalf of the others (decision 0028).
import type { Millis, Nano } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { ScopeId, ScopeWindow } from '../ports/policy.ts';

/** A request in the queue. A retry keeps its position; a request joins when it first waits. */
export interface QueuedRequest {
  /** The amount of the hold it asks for. */
  readonly amount: Nano;
  scopeId: ScopeId | undefined;
  /** Set while the request sleeps. */
  wake: (() => void) | undefined;
}

export interface HoldQueue {
  enter(amount: Nano): QueuedRequest;
  /** Resolves when money of the scope may be free for this request, or when the time has passed. */
  wait(queued: QueuedRequest, scopeId: ScopeId, millis: Millis): Promise<void>;
  /** Removes a request that has its answer, and wakes the request in front `next` times. */
  leave(queued: QueuedRequest, next: number): void;
  /** Money of these scopes is free. Only the request in front is woken: a thousand concurrent retries would only hinder each other. */
  freed(charges: ReadonlyArray<ScopeWindow>): void;
}

interface Line {
  /** Requests in order of arrival. */
  readonly requests: Set<QueuedRequest>;
  cancel: () => void;
}

/** Requests in front are woken this often: another process may have freed money unnoticed. */
const CHECK_AGAIN_AFTER: Millis = 100;

export function createHoldQueue(timer: Timer): HoldQueue {
  const lines = new Map<ScopeId, Line>();

  const open = (scopeId: ScopeId): Line => {
    const lookAgain = (): void => {
      line.cancel = timer(CHECK_AGAIN_AFTER, lookAgain);
      wakeFront(line);
    };
    const line = { requests: new Set<QueuedRequest>(), cancel: timer(CHECK_AGAIN_AFTER, lookAgain) };
    lines.set(scopeId, line);
    return line;
  };
  const enqueue = (queued: QueuedRequest, scopeId: ScopeId): void => {
    if (queued.scopeId === scopeId) return;
    // The request waits for another scope now; the next one in this line is woken to try.
    dequeue(queued, 1);
    queued.scopeId = scopeId;
    (lines.get(scopeId) ?? open(scopeId)).requests.add(queued);
  };
  const dequeue = (queued: QueuedRequest, next: number): void => {
    const { scopeId } = queued;
    const line = scopeId === undefined ? undefined : lines.get(scopeId);
    if (scopeId === undefined || line === undefined) return;
    queued.scopeId = undefined;
    line.requests.delete(queued);
    for (let count = 0; count < next; count += 1) wakeFront(line);
    if (line.requests.size > 0) return;
    line.cancel();
    lines.delete(scopeId);
  };

  return {
    enter: (amount) => ({ amount, scopeId: undefined, wake: undefined }),
    wait(queued, scopeId, millis) {
      enqueue(queued, scopeId);
      return new Promise((resolve) => {
        const cancel = timer(millis, () => queued.wake?.());
        queued.wake = () => {
          queued.wake = undefined;
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

/** Wakes each request that asks for less than all before it: money that is too little for it is too little for those behind it. */
function wakeFront({ requests }: Line): void {
  let min: Nano | undefined;
  for (const { amount, wake } of requests) {
    // A request that does not sleep is asking already.
    if (wake === undefined || (min !== undefined && amount >= min)) continue;
    min = amount;
    wake();
  }
}
