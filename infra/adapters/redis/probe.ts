// The probe of a store that processes share.
import type { SharedStoreConnection, StoreHealth } from '#core/ports/backends.ts';
import { probeUpstash } from './probe-upstash.ts';

/** Probes the store over a new connection, within 2 s. */
export async function probeShared(
  connection: SharedStoreConnection,
  instanceUid: string,
  fetch?: typeof globalThis.fetch,
): Promise<StoreHealth> {
  return connection.type === 'redis'
    ? (await import('./probe-redis.ts')).probeRedis(connection, instanceUid)
    : probeUpstash(connection, instanceUid, fetch);
}
