// The chaos harness: real Node processes, a real Redis, a real PostgreSQL, and a provider that records its deliveries.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import { toKeyValue } from '#core/keys/key-value.ts';
import type { Snapshot } from '#core/models/snapshot.ts';
import { type DatabaseConnection, type RedisAddress, toServerText } from '#core/ports/backends.ts';
import type { CounterStore } from '#core/ports/counter-store.ts';
import type { LedgerDatabase } from '#core/ports/ledger-database.ts';
import type { KeyPolicy, NamespacePolicy } from '#core/ports/policy.ts';
import { namespaceHolder, type ScopeWrite } from '#core/ports/registry.ts';
import { createMemoryLog } from '../../doubles/log.ts';
import { type Child, startChild } from '../../support/child.ts';
import { startPgBouncer } from '../../support/pgbouncer.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../support/postgres-standby.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startCluster, type TestCluster } from '../../support/redis-cluster.ts';
import { startSentinel, type TestSentinel } from '../../support/redis-sentinel.ts';
import { startUpstash, type TestUpstash, TOKEN } from '../../support/upstash.ts';
import { type BillingUpstream, startUpstream } from './upstream.ts';

/** Nano-dollars per token: one and two dollars per million. */
export const PRICE = { input: 1000n, output: 2000n };

export interface Gateway {
  readonly url: string;
  start(): Promise<void>;
  /** Sends SIGKILL; returns when the process is gone. */
  kill(): Promise<void>;
  isUp(): boolean;
}

export interface Key {
  readonly value: string;
  readonly scopeId: string;
  readonly limit: bigint;
  /** The write that made it. */
  readonly write: ScopeWrite & { readonly policy: KeyPolicy };
}

export interface Harness {
  readonly postgres: TestPostgres;
  /** The same server, if it has a standby. */
  readonly replicated: ReplicatedPostgres | undefined;
  readonly connection: DatabaseConnection;
  readonly database: ReturnType<typeof createDatabase>;
  readonly redis: TestRedis;
  readonly upstash: TestUpstash;
  /** With these kinds only. */
  readonly sentinel: TestSentinel | undefined;
  readonly cluster: TestCluster | undefined;
  readonly upstream: BillingUpstream;
  readonly folder: string;
  /** The snapshot of the gateways. */
  readonly snapshot: string;
  readonly gateways: ReadonlyArray<Gateway>;
  readonly keys: ReadonlyArray<Key>;
  readonly instanceUid: string;
  readonly kind: StoreKind;
  /** The counter store and the ledger database, seen from outside the gateways. */
  readonly counterStore: CounterStore;
  readonly ledgerDatabase: LedgerDatabase;
  stop(): Promise<void>;
}

/**
 * `memory`: the store of one gateway; its Redis is unused. `sentinel`, `cluster`: a Redis with TLS and a replica, behind
 * Sentinels or in a Cluster; the other Redis is unused. `upstash`: a REST interface in front of Redis.
 */
export type StoreKind = 'redis' | 'memory' | 'upstash' | 'sentinel' | 'cluster';

/** `pooled`: the gateways are behind a PgBouncer with two connections. `standby`: a standby can take over. */
export type DatabaseKind = 'alone' | 'pooled' | 'standby';

export interface Servers {
  readonly store?: StoreKind | undefined;
  readonly database?: DatabaseKind | undefined;
}

/**
 * An instance, keys with these limits, and `gateways` processes that share the store. `wordPause`: milliseconds after
 * each word of a stream.
 */
export async function startHarness(
  gateways: number,
  limits: ReadonlyArray<bigint>,
  { store: kind = 'redis', database: databaseKind = 'alone' }: Servers = {},
  wordPause?: number,
): Promise<Harness> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-faults-'));
  const replicated = databaseKind === 'standby' ? await startReplicatedPostgres() : undefined;
  const [postgres, redis, upstream] = await Promise.all([
    replicated ?? startPostgres(),
    startRedis(),
    startUpstream(wordPause),
  ]);
  const connection = await postgres.createDatabase();
  const pooler = databaseKind === 'pooled' ? await startPgBouncer(postgres.connection, 2) : undefined;
  const database = createDatabase(connection, { log: createMemoryLog() });
  const instanceUid = randomUUID();
  await database.migrate();
  await database.openInstance({ uid: instanceUid, namespace: 'default', name: 'faults' });
  const keys: Key[] = [];
  for (const limit of limits) keys.push(await makeKey(database, instanceUid, keys.length, limit));
  const upstash = await startUpstash(redis);
  const sentinel = kind === 'sentinel' ? await startSentinel() : undefined;
  const cluster = kind === 'cluster' ? await startCluster() : undefined;
  const own = sentinel ?? cluster ?? redis;
  const rest = { host: upstash.url, port: 443, password: TOKEN };
  const store = kind === 'memory' ? { host: 'memory' } : kind === 'upstash' ? rest : toFiles(own.connection);
  const mounts = mount(folder, instanceUid, upstream.url, pooler?.behind(connection) ?? connection, store);
  const made = Array.from({ length: gateways }, (_, at) => createGateway(mounts, join(folder, `journal-${at}`)));
  await Promise.all(made.map((gateway) => gateway.start()));
  const client = openRedis(own.connection, { instanceUid, log: createMemoryLog() });
  return {
    postgres,
    replicated,
    connection,
    database,
    redis,
    sentinel,
    cluster,
    upstream,
    gateways: made,
    keys,
    instanceUid,
    kind,
    upstash,
    folder,
    snapshot: readFileSync(mounts.SNAPSHOT_FILE ?? '', 'utf8'),
    counterStore: createRedisCounterStore({ evaluate: client.evaluate, instanceUid }),
    ledgerDatabase: database.ledgerDatabase(instanceUid, (count) => randomBytes(count)),
    async stop() {
      await Promise.all(made.map((gateway) => gateway.kill()));
      upstream.close();
      upstash.stop();
      await client.close();
      await database.close();
      await sentinel?.stop();
      await cluster?.stop();
      await redis.stop();
      await pooler?.stop();
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Writes the row of a namespace, unless it is there. Returns its policy. */
export async function putNamespace(
  database: Harness['database'],
  instanceUid: string,
  name = 'default',
  more: Partial<NamespacePolicy> = {},
): Promise<NamespacePolicy> {
  const policy: NamespacePolicy = {
    scopeId: randomUUID(),
    kind: 'namespace',
    name,
    of: 'default/faults',
    blocked: false,
    models: [],
    anchor: Math.floor(Date.now() / 1000) * 1000,
    chargedScopeIds: [],
    ...more,
  };
  const write = { instanceUid, kind: 'namespace', alias: name, holder: namespaceHolder(name), generation: 1 } as const;
  await database.putScope({ ...write, policy });
  return policy;
}

/** A key in the database of this instance, with this limit. */
export async function makeKey(
  database: Harness['database'],
  uid: string,
  at: number,
  limit: bigint,
  namespace = 'default',
): Promise<Key> {
  await putNamespace(database, uid, namespace);
  const value = toKeyValue(randomBytes(32));
  const holder = { uid: randomUUID(), namespace, name: `key-${at}` };
  const [kind, alias, scopeId] = ['key' as const, holder.name, randomUUID()];
  const policy: KeyPolicy = {
    scopeId,
    kind,
    name: alias,
    blocked: false,
    models: [],
    anchor: Math.floor(Date.now() / 1000) * 1000,
    chargedScopeIds: [],
    object: holder,
    budget: { limit: `${limit}`, duration: '30d', alignment: 'Rolling' },
  };
  const hash = createHash('sha256').update(value).digest('hex');
  const write = { instanceUid: uid, kind, alias, holder, policy, generation: 1, value: { hash } };
  if ((await database.putScope(write)) !== 'written') throw new Error('the alias was taken');
  return { value, scopeId, limit, write };
}

type Environment = Readonly<Record<string, string>>;

/** Environment of a gateway, and the files that it names. */
export function mount(
  folder: string,
  uid: string,
  apiBase: string,
  database: DatabaseConnection,
  store: Readonly<Record<string, string | number>>,
): Environment {
  const write = (name: string, entries: Readonly<Record<string, string | number>>): string => {
    mkdirSync(join(folder, name), { recursive: true });
    for (const [entry, value] of Object.entries(entries)) writeFileSync(join(folder, name, entry), `${value}`);
    return join(folder, name);
  };
  const snapshot: Snapshot = {
    version: 1,
    instance: { uid, namespace: 'default', name: 'faults' },
    routing: {
      strategy: 'Simple',
      retries: 0,
      timeouts: { connect: 5000, firstByte: 20_000, idle: 20_000, total: 60_000 },
      cooldown: { failures: 1000, within: 1000, duration: 1 },
    },
    models: [
      {
        modelName: 'fault',
        identifier: 'fault',
        provider: 'openai',
        model: 'fault',
        apiBase,
        credentials: {},
        requiresAuth: false,
        price: { input: '1', output: '2' },
        weight: 1,
        priority: 0,
        maxOutputTokens: 40,
      },
    ],
  };
  const { username, password, dbname } = database;
  return {
    SNAPSHOT_FILE: join(write('snapshot', { 'snapshot.json': JSON.stringify(snapshot) }), 'snapshot.json'),
    CREDENTIALS_DIR: write('credentials', {}),
    DATABASE_DIR: write('database', { host: database.host, port: database.port, username, password, dbname }),
    STORE_DIR: write('store', store),
  };
}

/** The files of a mounted Redis Secret. */
function toFiles(connection: RedisAddress): Readonly<Record<string, string | number>> {
  const { type: _, otherServers: __, tls, ...files } = connection;
  return { ...files, host: `${tls ? 'rediss://' : ''}${toServerText(connection)}` };
}

const PROGRAM = join(import.meta.dirname, '../../../infra/platforms/kubernetes/gateway.ts');

function createGateway(mounts: Environment, journal: string): Gateway {
  mkdirSync(journal, { recursive: true });
  let child: Child | undefined;
  let url = '';
  let port = '0';
  return {
    get url() {
      return url;
    },
    isUp: () => child?.isRunning() === true,
    async start() {
      const env = {
        PATH: process.env.PATH,
        HOST: '127.0.0.1',
        PORT: port,
        METRICS_PORT: '0',
        JOURNAL_DIR: journal,
        ...mounts,
      };
      child = startChild(process.execPath, [PROGRAM], { env });
      url = await child.prints(/"message":"listening".*"url":"([^"]+)"/);
      // The new process gets the same address, as behind a Service.
      port = new URL(url).port;
    },
    async kill() {
      await child?.end('SIGKILL');
    },
  };
}
