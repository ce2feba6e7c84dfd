// The primary of a counter store: the server that the Secret names, the one that its Sentinels name, or the node of a
// Cluster that owns the instance's slot. It is loaded when a Redis is used, with the library. Only the library's
// default export survives bundling: the package is CommonJS.
import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import library, { type Redis, type RedisOptions } from 'ioredis';
import { reasonOf } from '#core/failure/error-text.ts';
import { type RedisAddress, type Server, serversOf } from '#core/ports/backends.ts';
import { AnswerRefused } from '../backends/reply-memory.ts';
import { createConnector, type ServerState } from './connector.ts';
import type { OpenConnections } from './open-connections.ts';

const CONNECT_TIMEOUT = 1000;

type Options = Omit<RedisOptions, 'replyMapping'>;

export interface PrimaryDependencies {
  /** Bytes of a reply. */
  readonly maxReply: number;
  /** A Redis key of the instance: in a Cluster, the node that owns its slot is the primary of the instance. */
  readonly key: string;
  /** Further options of each connection. */
  readonly options: Options;
  readonly opened: OpenConnections;
}

/** A Sentinel cannot be used, or a server that Sentinels or a node of a Cluster name as the primary. */
export class ServerUnusable extends Error {
  override readonly name = 'ServerUnusable';
  readonly isSentinel: boolean;
  constructor({ host, port }: Server, isSentinel: boolean, cause: unknown) {
    const server = `${host}:${port}`;
    super(`${isSentinel ? `Sentinel ${server}` : `${server}, which is named as the primary`}: ${reasonOf(cause)}`, {
      cause,
    });
    this.isSentinel = isSentinel;
  }
}

/**
 * Connects to the primary, once: the connection is not opened again when it ends. All servers are asked concurrently,
 * and the first one that leads to a primary is used. Throws the reason if there is none.
 */
export async function connectPrimary(address: RedisAddress, deps: PrimaryDependencies): Promise<Redis> {
  const attempts = serversOf(address).map((server) => connectVia(server, address, deps));
  try {
    const first = await Promise.any(attempts);
    deps.opened.endOthers(first);
    // Another attempt may open a connection later.
    for (const attempt of attempts)
      attempt.then((redis) => redis !== first && redis.disconnect()).catch(() => undefined);
    return first;
  } catch (error) {
    const errors: ReadonlyArray<unknown> = error instanceof AggregateError ? error.errors : [error];
    // The reply of a server shows more than a server that is away.
    throw errors.find((one) => !isNetworkError(one)) ?? errors[0];
  }
}

/** Whether the error is one of the network. Node reports an AggregateError if a host name has several addresses. */
const isNetworkError = (error: unknown): boolean =>
  error instanceof AggregateError || (error instanceof Error && ('syscall' in error || isNetworkError(error.cause)));

const IS_SENTINEL =
  'is a Sentinel: map `sentinelMasterSecret` to the key of the Secret of redisSecretRef that has the name of the primary';
const SEVERAL_SERVERS =
  'is no Cluster, although its host lists several servers: write one server, or map `sentinelMasterSecret` if they are Sentinels';

/** Connects to the primary that this server leads to: itself, or the one that it announces as Sentinel or node. */
async function connectVia(server: Server, address: RedisAddress, deps: PrimaryDependencies): Promise<Redis> {
  if (address.sentinelMaster !== undefined)
    return connectAnnounced(await askSentinel(server, address, deps), address, deps);
  const { redis, state } = await connectServer(server, address, deps);
  try {
    if (modeOf(state) === 'sentinel') throw new AnswerRefused(IS_SENTINEL);
    if (!isCluster(state)) {
      if (address.otherServers !== undefined) throw new AnswerRefused(SEVERAL_SERVERS);
      return redis;
    }
    const owner = await askOwner(redis, server, deps.key);
    if (owner === undefined) return redis;
    redis.disconnect();
    return await connectAnnounced(owner, address, deps);
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}

/** The mode of the server, for which Valkey has a name of its own. */
const modeOf = ({ redis_mode: ofRedis, server_mode: ofValkey }: ServerState): string | undefined => ofRedis ?? ofValkey;

const isCluster = (state: ServerState): boolean => modeOf(state) === 'cluster' || state.cluster_enabled === '1';

/**
 * The node that owns the slot of the key; undefined: the node that is asked, also while the slot moves away from it.
 */
async function askOwner(redis: Redis, { host }: Server, key: string): Promise<Server | undefined> {
  try {
    await redis.exists(key);
    return undefined;
  } catch (error) {
    const reason = reasonOf(error);
    if (reason.startsWith('ASK ')) return undefined;
    const [, announced = '', port] = /^MOVED \d+ (.*):(\d+)$/.exec(reason) ?? [];
    if (port === undefined) throw error;
    // A node without a name that clients can use announces none: its host is the one that was asked.
    return { host: ['', '?'].includes(announced) ? host : announced, port: Number(port) };
  }
}

async function askSentinel(sentinel: Server, address: RedisAddress, deps: PrimaryDependencies): Promise<Server> {
  const { sentinelMaster = '', sentinelPassword, username, ...others } = address;
  // A Sentinel has a user name of its own; its password is the one of its user `default`.
  const login = sentinelPassword === undefined ? address : { ...others, password: sentinelPassword };
  try {
    const { redis, state } = await connectServer(sentinel, login, deps);
    try {
      if ((modeOf(state) ?? 'sentinel') !== 'sentinel')
        throw new Error(
          'this server is no Sentinel: remove `sentinelMasterSecret`, or write Sentinels into the host in the Secret of redisSecretRef',
        );
      const primary = await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', sentinelMaster);
      if (Array.isArray(primary)) return { host: String(primary[0]), port: Number(primary[1]) };
      throw new Error(
        'it has no primary of this name: check the key of the Secret of redisSecretRef that `sentinelMasterSecret` maps',
      );
    } finally {
      redis.disconnect();
    }
  } catch (error) {
    throw new ServerUnusable(sentinel, true, error);
  }
}

/**
 * Connects to the primary that a Sentinel or a node has announced: during a failover it may be a replica for a moment.
 */
async function connectAnnounced(server: Server, address: RedisAddress, deps: PrimaryDependencies): Promise<Redis> {
  try {
    const { redis, state } = await connectServer(server, address, deps);
    if (state.role === undefined || state.role === 'master') return redis;
    redis.disconnect();
    throw new Error('this server is a replica; a failover may be in progress');
  } catch (error) {
    throw new ServerUnusable(server, false, error);
  }
}

/** Connects to this server. Throws the reason if it does not work. */
async function connectServer(
  server: Server,
  address: RedisAddress,
  { maxReply, options, opened }: PrimaryDependencies,
) {
  let state: ServerState = {};
  let reason: unknown;
  const Connector = createConnector(library.AbstractConnector, {
    maxReply,
    ready: (found) => {
      state = found;
    },
  });
  const redis = new library.Redis({ ...optionsOf(server, address), ...options, Connector });
  redis.on('error', (error) => {
    reason = error;
  });
  opened.add(redis);
  try {
    await redis.connect();
    return { redis, state };
  } catch (error) {
    redis.disconnect();
    throw reason ?? error;
  }
}

/** With `lazyConnect`, `connect()` reports the outcome. */
function optionsOf({ host, port }: Server, address: RedisAddress): Options {
  const { username, password, tls } = address;
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
    retryStrategy: null,
    ...(username === undefined ? {} : { username }),
    ...(password === '' ? {} : { password }),
    ...(tls ? { tls: tlsOf(host, address) } : {}),
  };
}

/** Without `ca`, the authorities of Node are trusted. */
function tlsOf(host: string, address: RedisAddress): ConnectionOptions {
  const { ca, clientCertificate: cert, clientKey: key } = address;
  const names = serversOf(address).map((server) => server.host);
  const name = [host, ...names].find((one) => isIP(one) === 0);
  return {
    ...(name === undefined ? {} : { servername: name }),
    ...(names.includes(host) ? {} : { checkServerIdentity: checkIdentityOf([host, ...names]) }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  };
}

/** Checks a server that the Secret does not name: it must have a certificate for one of these hosts. */
function checkIdentityOf(hosts: ReadonlyArray<string>): NonNullable<ConnectionOptions['checkServerIdentity']> {
  return (_, certificate) => {
    const errors = hosts.map((host) => checkServerIdentity(host, certificate));
    return errors.includes(undefined) ? undefined : errors[0];
  };
}
