// Which columns has each core kind in `kubectl get`?
import type { Column } from './table.ts';

/** The columns of a core kind, or undefined where name and age are all. */
export function coreColumns(_apiVersion: string, _kind: string): Column[] | undefined {
  return undefined;
}
