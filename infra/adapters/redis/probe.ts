// The probe of a Redis: it must answer, run scripts, write, and evict nothing.

import { reasonOf } from '#core/failure/error-text.ts';
import type { SharedStoreConnection, StoreHealth } from '#core/ports/backends.ts';
import { AnswerRefused } from '../backends/reply-memory.ts';
import { createConnector } from './connector.ts';
import { inProbeTime, PROBE_TIMEOUT, probeUpstash, WRITE } from './probe-upstash.ts';
import { MAX_REPLY } from './reply-guard.ts';
import { optionsOf, type RedisAddress, readLibrary } from './tcp.ts';

/** Probes the store over a new connection, within 2 s. */
export function probeShared(
  connection: SharedStoreConnection,
  instanceUid: string,
  fetch?: typeof globalThis.fetch,
): Promise<StoreHealth> {
  return connection.type === 'redis'
    ? probeRedis(connection, instanceUid)
    : probeUpstash(connection, instanceUid, fetch);
}

export async function probeRedis(address: RedisAddress, instanceUid: string): Promise<StoreHealth> {
  const store = `Redis at ${address.host}:${address.port}`;
  const { Redis, AbstractConnector } = await readLibrary();
  let refusal: string | undefined;
  const refuse = (why: string) => {
    refusal = why;
  };
  const Connector = createConnector(AbstractConnector, { maxReply: MAX_REPLY, refuse });
  const redis = new Redis({ ...optionsOf(address), Connector, commandTimeout: PROBE_TIMEOUT, retryStrategy: null });
  const probe = async (): Promise<StoreHealth> => {
    await redis.connect();
    await redis.ping();
    const policy = await evictionPolicy(() => redis.config('GET', 'maxmemory-policy'));
    if (policy !== undefined && policy !== 'noeviction') return evicts(store, policy);
    await redis.eval(WRITE, 1, `{${instanceUid}}:probe`);
    return { ok: true };
  };
  let last: unknown;
  redis.on('error', (error) => {
    last = error;
  });
  try {
    return await inProbeTime(probe());
  } catch (error) {
    const serverError = refusal ?? (last instanceof AnswerRefused ? last.message : undefined);
    const message =
      serverError === undefined ? `${store}: ${toAdvice(reasonOf(last ?? error))}` : `${store} ${serverError}`;
    return { ok: false, reason: 'StoreUnreachable', message };
  } finally {
    redis.disconnect();
  }
}

function evicts(store: string, policy: string): StoreHealth {
  const message = `${store} has maxmemory-policy ${policy}, which drops counters when its memory is full: set it to noeviction`;
  return { ok: false, reason: 'StoreEvicts', message };
}

/**
 * Returns the eviction policy; undefined if the user may not read it, as with most hosted services (the docs have what
 * to check there).
 */
async function evictionPolicy(read: () => Promise<unknown>): Promise<string | undefined> {
  try {
    const reply = await read();
    return Array.isArray(reply) && typeof reply[1] === 'string' ? reply[1] : undefined;
  } catch (error) {
    // The server answered and refused the command.
    if (error instanceof Error && error.name === 'ReplyError') return undefined;
    throw error;
  }
}

/** The error, and what to check. */
function toAdvice(reason: string): string {
  if (/^(WRONGPASS|NOAUTH|ERR (AUTH|invalid password))/.test(reason)) {
    return `${reason}: check the user name and the password in the Secret of redisSecretRef`;
  }
  if (reason.startsWith('OOM')) return `${reason}: give Redis more memory`;
  if (/^(READONLY|MOVED|NOPERM|MISCONF)/.test(reason)) {
    return `${reason}: the ledger needs one primary on which this user may run scripts and write`;
  }
  return `${reason}: check the host and port in the Secret of redisSecretRef, whether the server uses TLS (\`rediss://name\`) or requires a client certificate, and that no firewall or proxy blocks it`;
}
