// The probe of a Redis: it must answer, run scripts, write, and evict nothing. It is loaded with the client library.

import { randomUUID } from 'node:crypto';
import { reasonOf } from '#core/failure/error-text.ts';
import { type RedisAddress, type StoreHealth, toServerText } from '#core/ports/backends.ts';
import { AnswerRefused, MAX_REPLY } from '../backends/reply-memory.ts';
import { metaKey } from './counter-store.ts';
import { createOpenConnections } from './open-connections.ts';
import { connectPrimary, ServerUnusable } from './primary.ts';
import { inProbeTime, PROBE_TIMEOUT, WRITE_PROBE } from './probe-upstash.ts';

export async function probeRedis(address: RedisAddress, instanceUid: string): Promise<StoreHealth> {
  const store = `Redis at ${toServerText(address)}`;
  const opened = createOpenConnections();
  let last: unknown;
  const probe = async (): Promise<StoreHealth> => {
    const redis = await connectPrimary(address, {
      maxReply: MAX_REPLY,
      key: metaKey(instanceUid),
      options: { commandTimeout: PROBE_TIMEOUT },
      opened,
    });
    redis.on('error', (error) => {
      last = error;
    });
    await redis.ping();
    const policy = await evictionPolicy(() => redis.config('GET', 'maxmemory-policy'));
    if (policy !== undefined && policy !== 'noeviction') return evicts(store, policy);
    // A key that is new shows whether the slot is moving.
    await redis.eval(WRITE_PROBE, 1, `{${instanceUid}}:probe:${randomUUID()}`);
    return { ok: true };
  };
  try {
    return await inProbeTime(probe());
  } catch (error) {
    const reason = last ?? error;
    const message = reason instanceof AnswerRefused ? `${store} ${reason.message}` : `${store}: ${toAdvice(reason)}`;
    return { ok: false, reason: 'StoreUnreachable', message };
  } finally {
    opened.end();
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
function toAdvice(error: unknown): string {
  const message = reasonOf(error);
  const other = error instanceof ServerUnusable ? error : undefined;
  // Redis 6.2 has the error of a script inside its own.
  const reason = (other === undefined ? message : reasonOf(other.cause)).replace(/^.*@user_script: \d+: -/s, '');
  if (/^(WRONGPASS|NOAUTH|ERR (AUTH|invalid password))/.test(reason))
    return other?.isSentinel
      ? `${message}: check the key of the Secret of redisSecretRef that \`sentinelPasswordSecret\` maps; if none is mapped, the Sentinels must accept the login of Redis`
      : `${message}: check the user name and the password in the Secret of redisSecretRef`;
  if (/^(ASK|TRYAGAIN)\b/.test(reason))
    return `${message}: the slot of this instance is moving to another node: wait until it has moved; gateways answer 503 until then`;
  if (reason.startsWith('CLUSTERDOWN'))
    return `${message}: check that the Cluster serves every slot, and that its nodes reach one another`;
  if (reason.startsWith('OOM')) return `${message}: give Redis more memory`;
  if (/^(READONLY|MOVED|NOPERM|MISCONF)/.test(reason)) {
    return `${message}: the ledger needs one primary on which this user may run scripts and write`;
  }
  if (/`sentinelMasterSecret`/.test(reason)) return message;
  if (/self.signed|unable to (get|verify)|altnames/.test(reason))
    return `${message}: check the key of the Secret of redisSecretRef that \`caSecret\` maps, and that the certificate of the server names its host`;
  if (/is a replica/.test(reason)) return `${message}; wait until it has ended`;
  if (other?.isSentinel === false)
    return `${message}: check that the operator and the gateways can reach this address, which the Sentinels or the Cluster announce`;
  return `${message}: check the host and port in the Secret of redisSecretRef, whether the server uses TLS (\`rediss://name\`) or requires a client certificate, and that no firewall or proxy blocks it`;
}
