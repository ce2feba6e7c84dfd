// The memory that the objects of a run take. Their authors decide how large they are, and a run keeps all of them.
import type { RunTarget } from '../run-target.ts';
import { hasFinalizer, isDeleted, type MalformedObject } from '../world.ts';

const MIB = 1024 * 1024;
/** The bytes of an ordinary VirtualKey. Only bytes beyond them are counted. */
const ORDINARY = 2048;

/** The maximum bytes beyond ordinary objects: of one namespace, and of all. */
interface Bounds {
  readonly namespace: number;
  readonly all: number;
}

/**
 * Bounds of a run by the bytes that scope objects of one namespace may take. Several triggers run concurrently, because
 * each loads less. Instances have bounds of their own, so scope objects in other namespaces do not displace an
 * instance.
 */
export const boundsOf = (bytes: number, look: RunTarget['look']) =>
  look === 'everywhere'
    ? {
        scopeObjects: { namespace: bytes, all: 1.5 * bytes },
        instances: { namespace: bytes / 4, all: bytes / 2 },
      }
    : {
        scopeObjects: { namespace: bytes / 4, all: bytes / 4 },
        instances: { namespace: bytes / 8, all: bytes / 8 },
      };

/** A namespace whose VirtualKeys, Users and Teams are too large together: a run plans only their deletion. */
export interface OversizedNamespace {
  readonly namespace: string;
  readonly objects: number;
  readonly size: string;
  readonly limit: string;
}

type SizedObject = Pick<MalformedObject, 'metadata' | 'violations'> & {
  readonly object: { spec: unknown } | undefined;
};

interface Group<T> {
  readonly namespace: string;
  /** Bytes of all objects, and of those that are kept. */
  readonly total: { count: number; bytes: number };
  bytes: number;
  kept: Array<{ readonly own: T; readonly bytes: number }>;
  isOversized: boolean;
}

/**
 * Counts the bytes of the objects that a run keeps. If there are too many, objects of the namespace with the most bytes
 * are dropped, those in deletion last: `drop` is called for each, now or later. `whole`: all objects of the namespace
 * that are not in deletion are dropped together, because they refer to each other; otherwise only the last ones.
 */
export function createObjectMemory<T extends SizedObject>(
  max: Bounds,
  { whole, drop }: { readonly whole: boolean; readonly drop: (own: T) => void },
) {
  const groups = new Map<string, Group<T>>();
  let all = 0;
  const remove = (group: Group<T>, { own, bytes }: Group<T>['kept'][number]): void => {
    group.bytes -= bytes;
    all -= bytes;
    drop(own);
  };
  const shrink = (group: Group<T>): void => {
    if (!whole || group.isOversized) {
      // `splice(-1, 1)` removes the last one.
      const at = group.isOversized ? -1 : group.kept.findLastIndex(({ own }) => !isInDeletion(own));
      for (const last of group.kept.splice(at, 1)) remove(group, last);
      return;
    }
    group.isOversized = true;
    const { true: deleted = [], false: others = [] } = Object.groupBy(group.kept, ({ own }) => `${isInDeletion(own)}`);
    group.kept = deleted;
    for (const other of others) remove(group, other);
  };
  const groupOf = (namespace: string): Group<T> => {
    const none = { namespace, total: { count: 0, bytes: 0 }, bytes: 0, kept: [], isOversized: false };
    const group = groups.get(namespace) ?? none;
    groups.set(namespace, group);
    return group;
  };
  return {
    keep(own: T): void {
      const { metadata, object, violations } = own;
      // A status is written by the operator: its first version must not make an object larger.
      const bytes = Math.max(0, bytesOf([metadata, object?.spec, violations]) - ORDINARY);
      const group = groupOf(metadata.namespace);
      group.total.count += 1;
      group.total.bytes += bytes;
      if (group.isOversized && !isInDeletion(own)) {
        drop(own);
        return;
      }
      group.kept.push({ own, bytes });
      group.bytes += bytes;
      all += bytes;
      while (group.bytes > max.namespace) shrink(group);
      while (all > max.all) shrink(largestOf(groups));
    },
    oversized: (): ReadonlyArray<OversizedNamespace> =>
      [...groups.values()]
        .filter(({ isOversized }) => isOversized)
        .map(({ namespace, total }) => ({
          namespace,
          objects: total.count,
          size: toMebibytes(total.bytes),
          limit: `${toMebibytes(max.namespace)}, ${toMebibytes(max.all)} of all namespaces`,
        })),
  };
}

/** Deletion makes a namespace smaller, and needs no other object. */
const isInDeletion = (own: SizedObject): boolean => isDeleted(own) && hasFinalizer(own);

const largestOf = <T>(groups: ReadonlyMap<string, Group<T>>): Group<T> =>
  [...groups.values()].reduce((largest, one) => (one.bytes > largest.bytes ? one : largest));

const toMebibytes = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

/** Approximate bytes that a JSON value takes in V8. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return 24 + (/[\u0100-\uffff]/.test(value) ? 2 : 1) * value.length;
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + 8 + bytesOf(one), 32);
  let bytes = 56;
  // A field name of a custom resource is in memory once. A name in a map is a text of the object.
  for (const [name, one] of Object.entries(value)) bytes += 8 + (name.length > 32 ? name.length : 8) + bytesOf(one);
  return bytes;
}
