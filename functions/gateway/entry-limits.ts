// How many requests and tokens per minute does a model entry take? (`gatewayParams.rpm`, `.tpm`)
import type { RateLimit } from '#core/ports/rates.ts';
import type { SnapshotEntry } from '#core/snapshot.ts';

/** Made once per entry of a snapshot: stores encode a limit once. */
const known = new WeakMap<SnapshotEntry, RateLimit>();

/** Undefined: as many as come. */
export function limitOf(entry: SnapshotEntry): RateLimit | undefined {
  if (entry.rpm === undefined && entry.tpm === undefined) return undefined;
  const before = known.get(entry);
  if (before !== undefined) return before;
  const limit = {
    id: `entry ${entry.identifier}`,
    ...(entry.rpm === undefined ? {} : { requests: entry.rpm }),
    ...(entry.tpm === undefined ? {} : { tokens: entry.tpm }),
  };
  known.set(entry, limit);
  return limit;
}
