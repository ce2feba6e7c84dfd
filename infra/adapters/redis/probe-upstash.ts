// The probe of an Upstash database: it must answer, run scripts, and write.

import { reasonOf } from '#core/failure/error-text.ts';
import type { StoreConnection, StoreHealth } from '#core/ports/backends.ts';
import { AnswerRefused } from '../backends/reply-memory.ts';
import { MAX_REPLY } from './reply-guard.ts';
import { openUpstash } from './upstash.ts';

export const PROBE_TIMEOUT = 1800;
export const WRITE = `return redis.call('SET', KEYS[1], '1', 'PX', '1000')`;

/** Upstash does not report its eviction policy; eviction is off by default. */
export async function probeUpstash(
  connection: Extract<StoreConnection, { type: 'upstash' }>,
  instanceUid: string,
): Promise<StoreHealth> {
  try {
    const { evaluate } = openUpstash(connection, { maxReply: MAX_REPLY });
    await withTimeout(PROBE_TIMEOUT, () => evaluate(WRITE, `{${instanceUid}}:probe`, []));
    return { ok: true };
  } catch (error) {
    if (error instanceof AnswerRefused)
      return { ok: false, reason: 'StoreUnreachable', message: `${connection.url} ${error.message}` };
    const message = `${connection.url}: ${reasonOf(error)}: check the host and password (token) in the store Secret; the token must be allowed to write`;
    return { ok: false, reason: 'StoreUnreachable', message };
  }
}

export function withTimeout<T>(millis: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => reject(new Error(`no answer within ${millis} ms`)), millis);
    work()
      .then(resolve, reject)
      .finally(() => clearTimeout(timeout));
  });
}
