// A primary, a replica and a Sentinel as a strict platform team runs them (redis-login.ts), with failovers.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { RedisAddress, Server } from '#core/ports/backends.ts';
import { freePort } from '../../infra/platforms/local/state/ports.ts';
import { startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { redisProgram, startRedis, type TestRedis } from './redis.ts';
import { documentedUser, newStrictLogin, type StrictLogin } from './redis-login.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface TestSentinel {
  /** The first Sentinel of its list is away. Sentinels have a password of their own. */
  readonly connection: RedisAddress;
  /** The server that is the primary now. */
  primary(): TestRedis;
  /** Its address with TLS. */
  primaryServer(): Server;
  /** Kills the primary; returns when the Sentinel has promoted the replica. The previous primary becomes its replica. */
  failOver(): Promise<void>;
  /** The same, with a replica that has only the state of this moment; `then` happens before the primary is killed. */
  failOverToLateReplica(then: () => Promise<unknown>): Promise<void>;
  stop(): Promise<void>;
}

const MASTER = 'main';
const SENTINEL_PASSWORD = 'sentinel-pw';

/** Sends a command to a server, as the user `default` without TLS. */
export async function commandTo(
  { connection: { host, port } }: Pick<TestRedis, 'connection'>,
  ...words: [string, ...string[]]
): Promise<unknown> {
  const client = new Redis({ host, port, protocol: 2, retryStrategy: null });
  client.on('error', () => undefined);
  return client.call(...words).finally(() => client.disconnect());
}

/** Waits until the replica has what its primary has now. */
export async function catchUp(primary: Pick<TestRedis, 'connection'>, replica: Pick<TestRedis, 'connection'>) {
  const offset = async (server: Pick<TestRedis, 'connection'>, field: string): Promise<number> =>
    Number(new RegExp(`${field}:(\\d+)`).exec(`${await commandTo(server, 'INFO', 'replication')}`)?.[1] ?? -1);
  const needed = await offset(primary, 'master_repl_offset');
  await eventually(
    () => offset(replica, 'slave_repl_offset'),
    (reached) => reached >= needed,
  );
}

export async function startSentinel(): Promise<TestSentinel> {
  const strict = await newStrictLogin();
  const [one, other] = [await startMember(strict), await startMember(strict)];
  await follow(other, one);
  const sentinel = await startSentinelProcess(strict, one.tlsPort);
  let [primary, replica] = [one, other];
  let failovers = 0;
  const swap = async (): Promise<void> => {
    failovers += 1;
    // Else it waits until it has missed the primary for long enough.
    const begin = () => sentinel.ask('SENTINEL', 'FAILOVER', MASTER).catch(String);
    await eventually(begin, (reply) => reply === 'OK');
    await sentinel.ended(failovers);
    [primary, replica] = [replica, primary];
    await replica.start();
    await follow(replica, primary);
  };
  await eventually(sentinel.replicas, (text) => /link-status,ok/.test(text));
  return {
    connection: {
      type: 'redis',
      host: '127.0.0.1',
      port: 1,
      otherServers: [{ host: '127.0.0.1', port: sentinel.tlsPort }],
      sentinelMaster: MASTER,
      sentinelPassword: SENTINEL_PASSWORD,
      ...strict.login,
    },
    primary: () => primary,
    primaryServer: () => ({ host: '127.0.0.1', port: primary.tlsPort }),

    async failOver() {
      await catchUp(primary, replica);
      await primary.kill();
      await swap();
    },
    async failOverToLateReplica(then) {
      await catchUp(primary, replica);
      await commandTo(replica, 'SAVE');
      await replica.kill();
      await then();
      await primary.kill();
      await replica.start();
      await swap();
    },
    async stop() {
      await sentinel.stop();
      await Promise.all([one.stop(), other.stop()]);
    },
  };
}

type Member = TestRedis & { readonly tlsPort: number };

async function startMember(strict: StrictLogin): Promise<Member> {
  const tlsPort = await freePort(0, 'any');
  const user = ['--user', ...documentedUser('acl')];
  const server = await startRedis([...strict.settings(tlsPort), '--tls-replication', 'yes', ...user]);
  return { ...server, tlsPort };
}

async function follow(replica: Member, { tlsPort }: Member): Promise<void> {
  await commandTo(replica, 'REPLICAOF', '127.0.0.1', `${tlsPort}`);
  const link = async () => `${await commandTo(replica, 'INFO', 'replication')}`;
  await eventually(link, (info) => info.includes('master_link_status:up'));
}

async function startSentinelProcess(strict: StrictLogin, primaryPort: number) {
  const folder = temporaryFolder();
  const [port, tlsPort] = [await freePort(0, 'any'), await freePort(0, 'any')];
  const toLines = (settings: ReadonlyArray<string>): string =>
    settings.map((word) => (word.startsWith('--') ? `\n${word.slice(2)}` : ` ${word}`)).join('');
  const file = join(folder, 'sentinel.conf');
  const text = `port ${port}
bind 127.0.0.1
dir ${folder}
requirepass ${SENTINEL_PASSWORD}
sentinel monitor ${MASTER} 127.0.0.1 ${primaryPort} 1
sentinel down-after-milliseconds ${MASTER} 3000
sentinel failover-timeout ${MASTER} 2000
user ${documentedUser('sentinel-acl').join(' ')}
tls-replication yes${toLines(strict.settings(tlsPort))}
`;
  writeFileSync(file, text);
  const child = startChild(redisProgram(), [file, '--sentinel']);
  const ask = async (...words: [string, ...string[]]): Promise<unknown> => {
    const client = new Redis({
      host: '127.0.0.1',
      port,
      password: SENTINEL_PASSWORD,
      protocol: 2,
      retryStrategy: null,
    });
    client.on('error', () => undefined);
    return client.call(...words).finally(() => client.disconnect());
  };
  await child.until(async () => (await ask('PING').catch(() => '')) === 'PONG');
  return {
    tlsPort,
    /** Waits until it has ended so many failovers. */
    ended: (failovers: number) => child.until(() => child.stdout().split('+switch-master').length > failovers),
    ask,
    replicas: async () => `${await ask('SENTINEL', 'REPLICAS', MASTER)}`.replace('master-link-status', 'link-status'),
    stop: async () => void (await child.end('SIGKILL')),
  };
}
