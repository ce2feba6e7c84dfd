// Redis or Valkey over TCP: one connection that fails immediately while the server is away, and reconnects by itself.
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { AbstractConnector, Redis, RedisOptions } from 'ioredis';
import { reasonOf } from '#core/failure/error-text.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Log } from '#core/ports/telemetry.ts';
import type { MemoryShare } from '../backends/reply-memory.ts';
import { createConnector } from './connector.ts';
import { createEvaluate, type Evaluate } from './counter-store.ts';
import { MAX_OWN_REPLY, MAX_REPLY } from './reply-guard.ts';

export type RedisAddress = Extract<StoreConnection, { type: 'redis' }>;

export interface StoreDependencies {
  readonly log: Log;
  /** Reads the login (user, password, certificates) again, before each new attempt; throws while it cannot be read. */
  readonly readLogin?: (() => StoreConnection) | undefined;
  /** The share of the work that uses the connection: the connection ends with the work. Absent: the process uses it. */
  readonly share?: MemoryShare | undefined;
}

export interface RedisConnection {
  readonly evaluate: Evaluate;
  /** Ends the connection and connects again, to where the address leads now. */
  reconnect(): void;
  close(): Promise<void>;
}

/**
 * The timeout of commands and of the socket. Clients wait less (core/ledger/timeout.ts), and a later answer still
 * counts.
 */
const ANSWER_TIMEOUT = 1700;
const CONNECT_TIMEOUT = 1000;
/** The pause between attempts to connect. */
const RECONNECT_AFTER = 250;

/**
 * Connects immediately, so the first request finds an open connection. A call is sent or refused, never queued and
 * never sent twice: the caller repeats it (ports/counter-store.ts). Only here is the library imported, so a process
 * with a memory store does not load it.
 */
export function openRedis(address: RedisAddress, deps: StoreDependencies): RedisConnection {
  const opening = connect(address, deps);
  // The first call reports the error.
  opening.catch(() => undefined);
  deps.share?.signal.addEventListener('abort', () => void opening.then(({ close }) => close()).catch(() => undefined));
  return {
    evaluate: createEvaluate(async (command, script, key, args) => {
      const { redis, firstTry } = await opening;
      await firstTry;
      return redis[command](script, 1, key, ...args);
    }),
    reconnect() {
      opening.then(({ redis }) => redis.disconnect(true)).catch(() => undefined);
    },
    async close() {
      (await opening).close();
    },
  };
}

interface OpenConnection {
  readonly redis: Redis;
  /** Resolves after the first attempt, failed or not. */
  readonly firstTry: Promise<void>;
  close(): void;
}

async function connect(address: RedisAddress, { log, readLogin, share }: StoreDependencies): Promise<OpenConnection> {
  const library = await readLibrary();
  let why = 'the connection ended';
  const maxReply = share === undefined ? MAX_OWN_REPLY : MAX_REPLY;
  const refuse = (reason: string) => {
    why = reason;
  };
  const options: Options = {
    ...optionsOf(address),
    Connector: createConnector(library.AbstractConnector, { maxReply, refuse }),
    commandTimeout: ANSWER_TIMEOUT,
    socketTimeout: ANSWER_TIMEOUT,
    // Work with a share calls only now and then, and connects again with its next call: else a server that closes its
    // connections would get new ones all the time.
    retryStrategy:
      share === undefined
        ? () => {
            Object.assign(redis.options, loginOf(address, readLogin));
            return RECONNECT_AFTER;
          }
        : null,
    // A primary became a replica: the name may resolve to the new primary.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  const redis: Redis = new library.Redis(options);
  const store = `${address.host}:${address.port}`;
  let isAway = false;
  let isClosed = false;
  redis.on('error', (error: Error) => {
    why = reasonOf(error);
  });
  redis.on('close', () => {
    if (!isAway && !isClosed)
      log.warn('the connection to the counter store ended, and is opened again', { store, why });
    isAway = true;
  });
  redis.on('ready', () => {
    if (isAway) log.info('the counter store is connected again', { store });
    isAway = false;
  });
  const close = (): void => {
    isClosed = true;
    redis.disconnect();
  };
  return { redis, firstTry: redis.connect().catch(() => undefined), close };
}

/** The options of the present login; none while it cannot be read. The server stays the same. */
function loginOf(
  address: RedisAddress,
  read: StoreDependencies['readLogin'],
): Pick<Options, 'username' | 'password' | 'tls'> {
  try {
    const found = read?.();
    if (found?.type !== 'redis') return {};
    const { host, port, tls } = address;
    const { username, password, tls: options } = optionsOf({ ...found, host, port, tls });
    return { username, password, ...(options && { tls: options }) };
  } catch {
    // The kubelet is writing the files, or the Secret lacks a key.
    return {};
  }
}

/** The library. Only its default export survives bundling: the package is CommonJS. */
export async function readLibrary(): Promise<{
  readonly Redis: typeof Redis;
  readonly AbstractConnector: typeof AbstractConnector;
}> {
  const { default: library } = await import('ioredis');
  return library;
}

type Options = Omit<RedisOptions, 'replyMapping'>;

/** Options of every connection. With `lazyConnect`, `connect()` reports the outcome. */
export function optionsOf(address: RedisAddress): Options {
  const { host, port, username, password, tls } = address;
  return {
    host,
    port,
    protocol: 2,
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT,
    disconnectTimeout: 100,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    keepAlive: 10_000,
    ...(username === undefined ? {} : { username }),
    ...(password === '' ? {} : { password }),
    ...(tls ? { tls: tlsOf(address) } : {}),
  };
}

/** An absent CA leaves the choice to Node. */
function tlsOf({ host, ca, clientCertificate: cert, clientKey: key }: RedisAddress): ConnectionOptions {
  return {
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  };
}
