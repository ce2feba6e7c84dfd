// The memory that objects of a run take: their authors decide how large they are, and a run holds all there are.
import type { Scope } from '../scope.ts';

const MIB = 1024 * 1024;
/** Bytes of an object that count for nothing: those of an ordinary VirtualKey. */
const ORDINARY = 2048;
/** Bytes beyond that which a resync may hold, of one namespace and of all; and a trigger, of which some run. */
const MAX = { namespace: 16 * MIB, resync: 64 * MIB, trigger: 16 * MIB };

/** A trigger that would hold more than it may: the next resync looks at its object. */
export class TooLargeTogether extends Error {
  override readonly name = 'TooLargeTogether';
  override readonly message =
    'the objects that the trigger needs are too large together: the next resync looks at them';
}

/** Objects of a namespace beyond what is ordinary, the last one last. */
interface Large {
  bytes: number;
  readonly objects: Array<{ readonly bytes: number; readonly drop: () => void }>;
}

/**
 * Counts what a run keeps. `drop` is called, now or later, for an object that is not to be kept: the last ones of the
 * namespace whose objects have the most bytes beyond what is ordinary.
 */
export function createObjectMemory({ look }: Scope) {
  const namespaces = new Map<string, Large>();
  let all = 0;
  const dropLast = (large: Large): void => {
    const last = large.objects.pop();
    large.bytes -= last?.bytes ?? 0;
    all -= last?.bytes ?? 0;
    last?.drop();
  };
  return {
    keep(namespace: string, kept: unknown, drop: () => void): void {
      const bytes = bytesOf(kept) - ORDINARY;
      if (bytes <= 0) return;
      const own = namespaces.get(namespace) ?? { bytes: 0, objects: [] };
      namespaces.set(namespace, own);
      own.objects.push({ bytes, drop });
      own.bytes += bytes;
      all += bytes;
      if (look === 'at' && all > MAX.trigger) throw new TooLargeTogether();
      while (own.bytes > MAX.namespace) dropLast(own);
      while (all > MAX.resync) dropLast(largestOf(namespaces));
    },
  };
}

const largestOf = (namespaces: ReadonlyMap<string, Large>): Large =>
  [...namespaces.values()].reduce((largest, one) => (one.bytes > largest.bytes ? one : largest));

/** Bytes that a value of JSON takes in V8, roughly. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return 24 + (/[\u0100-\uffff]/.test(value) ? 2 : 1) * value.length;
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value)) return value.reduce((sum: number, one) => sum + 8 + bytesOf(one), 32);
  let bytes = 56;
  // Names of members that our kinds have are in memory once; those of maps are texts of the object.
  for (const [name, one] of Object.entries(value)) bytes += 8 + (name.length > 32 ? name.length : 8) + bytesOf(one);
  return bytes;
}
