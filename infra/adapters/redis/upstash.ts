// Upstash over HTTPS: one request per call, no open connection between calls.
import type { StoreConnection } from '#core/ports/backends.ts';
import { createEvaluate } from './accounts.ts';
import type { RedisConnection } from './tcp.ts';

/** The timeout of a request. Clients wait less (core/ledger/timeout.ts), and a later answer still counts. */
const ANSWER_TIMEOUT = 1700;

/** Sends each call once: the caller repeats it (ports/store.ts). The library is imported only here. */
export function openUpstash({ url, token }: Extract<StoreConnection, { type: 'upstash' }>): RedisConnection {
  const opening = connect(url, token);
  opening.catch(() => undefined);
  return {
    evaluate: createEvaluate(async (command, script, key, args) => (await opening)[command](script, [key], [...args])),
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
