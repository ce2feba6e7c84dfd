// Upstash over HTTPS: one request a call; nothing stays open between them.
import { createHash } from 'node:crypto';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { RedisConnection } from './tcp.ts';

/** Clients wait less (core/ledger/request-deadline.ts); what answers later still counts. */
const SILENCE = 1700;

/** A call is sent once: whoever asks repeats it (ports/store.ts). The library is read only here. */
export function openUpstash({ url, token }: Extract<StoreConnection, { type: 'upstash' }>): RedisConnection {
  const opening = connect(url, token);
  opening.catch(() => undefined);
  const names = new Map<string, string>();
  return {
    async evaluate(script, key, words) {
      const redis = await opening;
      const sha = names.get(script) ?? createHash('sha1').update(script).digest('hex');
      names.set(script, sha);
      const values = [...words];
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
    // Amounts are strings and stay so; plain JSON needs no base64 around it.
    ...{ automaticDeserialization: false, responseEncoding: false },
    signal: () => AbortSignal.timeout(SILENCE),
  });
}
