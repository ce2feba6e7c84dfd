// Upstash over HTTPS: one request per call, no open connection between calls.
import { createHash } from 'node:crypto';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { RedisConnection } from './tcp.ts';

/** The timeout of a request. Clients wait less (core/ledger/request-deadline.ts), and a later answer still counts. */
const ANSWER_TIMEOUT = 1700;

/** Sends each call once: the caller repeats it (ports/store.ts). The library is imported only here. */
export function openUpstash({ url, token }: Extract<StoreConnection, { type: 'upstash' }>): RedisConnection {
  const opening = connect(url, token);
  opening.catch(() => undefined);
  const names = new Map<string, string>();
  return {
    async evaluate(script, key, args) {
      const redis = await opening;
      const sha = names.get(script) ?? createHash('sha1').update(script).digest('hex');
      names.set(script, sha);
      const values = [...args];
      try {
        return await redis.evalsha(sha, [key], values);
      } catch (error) {
        if (!(error instanceof Error && error.message.includes('NOSCRIPT'))) throw error;
        return await redis.eval(script, [key], values);
      }
    },
    close: async () => undefined,
  };
}

async function connect(url: string, token: string) {
  const { Redis } = await import('@upstash/redis');
  return new Redis({
    ...{ url, token, retry: false, enableTelemetry: false, enableAutoPipelining: false },
    // Amounts stay strings, and plain JSON needs no base64.
    ...{ automaticDeserialization: false, responseEncoding: false },
    signal: () => AbortSignal.timeout(ANSWER_TIMEOUT),
  });
}
