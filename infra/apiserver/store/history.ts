// The latest changes of all objects, so that a watch can resume.
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
  /** Everything after a revision, or undefined where that was compacted. */
  since(revision: number): readonly StoredEvent[] | undefined;
  /** The revision up to which events should now be compacted; 0 where that is not worth a delete yet. */
  compactable(): number;
  compact(revision: number): void;
  /** Events up to this revision are gone. */
  compactedRevision(): number;
};

/** Keeps between `length` and 1.1 × `length` events. Every revision is one event: the first of them is that after `compacted`. */
export function createHistory(length: number, initiallyCompacted: number): History {
  let events: StoredEvent[] = [];
  let compacted = initiallyCompacted;
  return {
    add: (event) => void events.push(event),
    since: (revision) => (revision < compacted ? undefined : events.slice(revision - compacted)),
    compactable: () => (events.length > length * 1.1 ? (events[events.length - length - 1]?.revision ?? 0) : 0),
    compact(revision) {
      if (revision <= compacted) return;
      events = events.slice(revision - compacted);
      compacted = revision;
    },
    compactedRevision: () => compacted,
  };
}
