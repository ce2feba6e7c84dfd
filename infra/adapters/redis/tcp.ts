// Redis or Valkey over TCP: one connection that refuses immediately while it is away, and comes back by itself.
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import type { Redis, RedisOptions } from 'ioredis';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Log } from '#core/ports/clock.ts';
import { reasonOf } from '#core/reason.ts';
import type { Evaluate } from './store.ts';

export type RedisAddress = Extract<StoreConnection, { type: 'redis' }>;

export interface RedisConnection {
  readonly evaluate: Evaluate;
  close(): Promise<void>;
}

/** Clients wait less (core/ledger/request-deadline.ts), and an answer that comes later still counts; a connection on which nothing comes for so long is made anew. */
const SILENCE = 1700;
const CONNECT = 1000;
/** Between attempts: it works again soon after the store does. */
const AGAIN = 250;

/**
 * Connects at once, so that the first request finds it open. A call is sent or refused, never kept for later and never sent
 * twice: whoever asks repeats it (ports/store.ts). The library is read only here: a memory store does not pay for it.
 */
export function openRedis(address: RedisAddress, { log }: { readonly log: Log }): RedisConnection {
  const opening = connect(address, log);
  // Whoever asks first hears of it.
  opening.catch(() => undefined);
  const names = new Map<string, string>();
  return {
    async evaluate(script, key, words) {
      const { redis, firstTry } = await opening;
      await firstTry;
      const sha = names.get(script) ?? createHash('sha1').update(script).digest('hex');
      names.set(script, sha);
      try {
        return await redis.evalsha(sha, 1, key, ...words);
      } catch (error) {
        // Also after a restart of the server. Nothing was done yet.
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
        return await redis.eval(script, 1, key, ...words);
      }
    },
    async close() {
      (await opening).close();
    },
  };
}

interface Opened {
  readonly redis: Redis;
  /** Resolves when the first attempt is over, however it ended. */
  readonly firstTry: Promise<void>;
  close(): void;
}

async function connect(address: RedisAddress, log: Log): Promise<Opened> {
  const { Redis } = await readLibrary();
  const options: Options = {
    ...optionsOf(address),
    commandTimeout: SILENCE,
    socketTimeout: SILENCE,
    retryStrategy: () => AGAIN,
    // A primary that became a replica: the name may lead to the new primary.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  const redis = new Redis(options);
  const store = `${address.host}:${address.port}`;
  let isAway = false;
  let isClosed = false;
  let why = 'the connection ended';
  redis.on('error', (error: Error) => {
    why = reasonOf(error);
  });
  redis.on('close', () => {
    if (!isAway && !isClosed) log.warn('the store is away', { store, why });
    isAway = true;
  });
  redis.on('ready', () => {
    if (isAway) log.info('the store is back', { store });
    isAway = false;
  });
  const close = (): void => {
    isClosed = true;
    redis.disconnect();
  };
  return { redis, firstTry: redis.connect().catch(() => undefined), close };
}

/** Only the default export is there in a bundle too: the package is CommonJS. */
export async function readLibrary(): Promise<{ readonly Redis: typeof Redis }> {
  const { default: library } = await import('ioredis');
  return library;
}

type Options = Omit<RedisOptions, 'replyMapping'>;

/** What every connection of ours has in common. `lazyConnect`: `connect()` says how it went. */
export function optionsOf({ host, port, password, tls }: RedisAddress): Options {
  return {
    ...{ host, port, protocol: 2, lazyConnect: true, connectTimeout: CONNECT, disconnectTimeout: 100 },
    ...{ enableOfflineQueue: false, autoResendUnfulfilledCommands: false, keepAlive: 10_000 },
    ...(password === '' ? {} : { password }),
    ...(tls ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
  };
}

/** An error in words; several attempts at one name come as one error without a message of its own. */
