// Redis or Valkey over TCP: one connection to the primary that fails immediately while it is away, and is opened again.
import { isDeepStrictEqual } from 'node:util';
import type { Redis } from 'ioredis';
import { reasonOf } from '#core/failure/error-text.ts';
import { type RedisAddress, type StoreConnection, toServerText } from '#core/ports/backends.ts';
import type { Log } from '#core/ports/telemetry.ts';
import { MAX_OWN_REPLY, MAX_REPLY, type WorkMemory } from '../backends/reply-memory.ts';
import { createEvaluate, type Evaluate, metaKey } from './counter-store.ts';
import { createOpenConnections } from './open-connections.ts';
import type { PrimaryDependencies } from './primary.ts';

export interface StoreDependencies {
  readonly log: Log;
  /** The instance whose counters are called. Only a Cluster needs it. */
  readonly instanceUid?: string;
  /** Reads the login (user, password, certificates) again, after a failed attempt; throws while it cannot be read. */
  readonly readLogin?: (() => StoreConnection) | undefined;
  /**
   * The memory of the work that uses the connection: the connection ends with the work. Absent: the process uses it.
   */
  readonly workMemory?: WorkMemory | undefined;
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
/** The pause between attempts to connect. */
const RECONNECT_AFTER = 250;
/** Reasons that the log has until the next connection. */
const MAX_REASONS = 4;

const OPTIONS: PrimaryDependencies['options'] = {
  commandTimeout: ANSWER_TIMEOUT,
  socketTimeout: ANSWER_TIMEOUT,
  // The primary became a replica, its slot has moved, or its node has left the Cluster: another server is the primary.
  // Redis 6.2 has the first error of a script inside its own.
  reconnectOnError: ({ message }) => /^(READONLY|MOVED|CLUSTERDOWN)\b|@user_script: \d+: -READONLY\b/.test(message),
};

/**
 * Connects immediately, so the first request finds an open connection. A call is sent or refused, never queued and
 * never sent twice: the caller repeats it (ports/counter-store.ts). The library is imported when a connection is
 * opened, so a process with a memory store does not load it.
 */
export function openRedis(address: RedisAddress, deps: StoreDependencies): RedisConnection {
  const { log, instanceUid = '', readLogin, workMemory } = deps;
  const store = toServerText(address);
  const maxReply = workMemory === undefined ? MAX_OWN_REPLY : MAX_REPLY;
  const opened = createOpenConnections();
  let primary: Redis | undefined;
  let reopening: NodeJS.Timeout | undefined;
  let isClosed = false;
  /** Why there is no connection, each reason once; empty while there is one. */
  const reasons = new Set<string>();
  const parts = { maxReply, key: metaKey(instanceUid), options: OPTIONS, opened };
  /** The address with the login that the server accepted last. */
  let accepted = address;
  /** Connects with the present login, or with the one that is mounted now: the server must accept it. */
  const connect = async (): Promise<Redis> => {
    const { connectPrimary } = await import('./primary.ts');
    try {
      return await connectPrimary(accepted, parts);
    } catch (error) {
      const login = readLoginNow(readLogin);
      if (login === undefined || isClosed || isDeepStrictEqual(login, loginOf(accepted))) throw error;
      // Members that are absent now replace the previous ones.
      const next = { ...accepted, ...login } as RedisAddress;
      const redis = await connectPrimary(next, parts);
      accepted = next;
      return redis;
    }
  };
  const open = async (): Promise<void> => {
    try {
      const redis = await connect();
      if (isClosed) return redis.disconnect();
      let why = 'the connection ended';
      redis.on('error', (error: Error) => {
        why = reasonOf(error);
      });
      redis.once('end', () => onLost(why));
      if (redis.status === 'end') return onLost(why);
      primary = redis;
      if (reasons.size > 0) log.info('the counter store is connected again', { store });
      reasons.clear();
    } catch (error) {
      onLost(reasonOf(error));
    }
  };
  const onLost = (why: string): void => {
    primary = undefined;
    if (isClosed) return;
    if (!reasons.has(why) && reasons.size < MAX_REASONS) {
      log.warn('the connection to the counter store ended, and is opened again', { store, why });
      reasons.add(why);
    }
    // Work with its own memory calls only now and then: a server that closes its connections would get new ones all the
    // time.
    if (workMemory === undefined) reopening = setTimeout(() => void open(), RECONNECT_AFTER);
  };
  const close = (): void => {
    isClosed = true;
    clearTimeout(reopening);
    opened.end();
  };
  workMemory?.signal.addEventListener('abort', close);
  const firstTry = open();
  return {
    evaluate: createEvaluate(async (command, script, key, args) => {
      await firstTry;
      if (primary === undefined) throw new Error('the connection to the counter store is closed');
      return primary[command](script, 1, key, ...args).catch(throwInnerError);
    }),
    reconnect: () => primary?.disconnect(),
    async close() {
      close();
    },
  };
}

/** Throws what a command in the script answered: Redis 6.2 has it inside an error of the script. */
function throwInnerError(error: unknown): never {
  const [, inner] = (error instanceof Error && /@user_script: \d+: -(.*)/s.exec(error.message)) || [];
  throw inner === undefined ? error : new Error(inner, { cause: error });
}

/** The login that can be read now. The servers stay the same. */
function readLoginNow(read: StoreDependencies['readLogin']) {
  try {
    const found = read?.();
    return found?.type === 'redis' ? loginOf(found) : undefined;
  } catch {
    // The kubelet is writing the files, or the Secret lacks a key.
    return undefined;
  }
}

const loginOf = ({ username, password, ca, clientCertificate, clientKey, sentinelPassword }: RedisAddress) => ({
  username,
  password,
  ca,
  clientCertificate,
  clientKey,
  sentinelPassword,
});
