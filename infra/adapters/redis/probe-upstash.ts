// The probe of an Upstash database: it must answer, run scripts, and write.

import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import type { StoreConnection, StoreHealth } from '#core/ports/backends.ts';
import { AnswerRefused, MAX_REPLY } from '../backends/reply-memory.ts';
import { processTimer } from '../process/timer.ts';
import { openUpstash } from './upstash.ts';

export const PROBE_TIMEOUT = 1800;
export const inProbeTime = <T>(work: Promise<T>): Promise<T> =>
  withTimeout(processTimer, PROBE_TIMEOUT, 'the server', work);
export const WRITE_PROBE = `return redis.call('SET', KEYS[1], '1', 'PX', '1000')`;

/** Upstash does not report its eviction policy; eviction is off by default. */
export async function probeUpstash(
  connection: Extract<StoreConnection, { type: 'upstash' }>,
  instanceUid: string,
  fetch?: typeof globalThis.fetch,
): Promise<StoreHealth> {
  try {
    const { evaluate } = openUpstash(connection, { fetch, maxReply: MAX_REPLY });
    await inProbeTime(evaluate(WRITE_PROBE, `{${instanceUid}}:probe`, []));
    return { ok: true };
  } catch (error) {
    if (error instanceof AnswerRefused)
      return { ok: false, reason: 'StoreUnreachable', message: `${connection.url} ${error.message}` };
    const message = `${connection.url}: ${reasonOf(error)}: check the host and password (token) in the Secret of redisSecretRef; the token must be allowed to write`;
    return { ok: false, reason: 'StoreUnreachable', message };
  }
}
