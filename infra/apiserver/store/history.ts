// What happened to the objects lately, so that a watch can resume and a list can stay on one revision?
import type { KubeObject } from '../object.ts';

export type Key = { readonly resource: string; readonly namespace: string; readonly name: string };

export type StoredEvent = Key & {
  readonly revision: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The object after the change; of a deletion its last state, with the deletion's resourceVersion. */
  readonly object: KubeObject;
  readonly previous?: KubeObject;
};

export type History = {
  add(event: StoredEvent): void;
  /** Everything after a revision, or undefined when that is no longer known. */
  since(revision: number): readonly StoredEvent[] | undefined;
  /** The revision up to which events should now be forgotten, if that is worth a delete. */
  forgettable(): number;
  forget(revision: number): void;
  /** Events up to this revision are gone. */
  floor(): number;
};

/** Keeps between `length` and 1.1 × `length` events. */
export function createHistory(length: number, initialFloor: number): History {
  let events: StoredEvent[] = [];
  let floor = initialFloor;
  return {
    add: (event) => void events.push(event),
    since(revision) {
      if (revision < floor) return undefined;
      return events.slice(firstAfter(events, revision));
    },
    forgettable: () => (events.length > length * 1.1 ? (events[events.length - length - 1]?.revision ?? 0) : 0),
    forget(revision) {
      if (revision <= floor) return;
      events = events.slice(firstAfter(events, revision));
      floor = revision;
    },
    floor: () => floor,
  };
}

function firstAfter(events: readonly StoredEvent[], revision: number): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.revision ?? 0) <= revision) low = middle + 1;
    else high = middle;
  }
  return low;
}
