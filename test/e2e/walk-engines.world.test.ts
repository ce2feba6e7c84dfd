// The walk of the README on other engines, each with what its machines do: a failover or a moved slot before each test.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { parse, stringify } from 'yaml';
import { type DatabaseConnection, type RedisAddress, toServerText } from '#core/ports/backends.ts';
import { eventually } from '../support/eventually.ts';
import { startPgBouncer, whyNoPgBouncer } from '../support/pgbouncer.ts';
import { startPostgres } from '../support/postgres.ts';
import { startReplicatedPostgres } from '../support/postgres-standby.ts';
import { whyNoRedis } from '../support/redis.ts';
import { startCluster } from '../support/redis-cluster.ts';
import { startSentinel } from '../support/redis-sentinel.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { answerTo, startTestStack, type TestStack } from '../support/stack.ts';
import { describeWalk } from './walk.ts';

interface Engine {
  readonly redis?: RedisAddress;
  readonly database?: DatabaseConnection;
  /** What happens before the test of this number. */
  disturb?(number: number, stack: TestStack): Promise<void>;
  stop(): Promise<unknown>;
}

const inCluster = async (): Promise<Engine> => {
  const cluster = await startCluster();
  return {
    redis: cluster.connection,
    async disturb(number, stack) {
      if (number % 2 === 0) return cluster.failOver();
      const move = await cluster.beginMove(await stack.ok('get', 'gwi', 'sample', '-o', 'jsonpath={.metadata.uid}'));
      await move.moveKeys(3);
      await move.end();
    },
    stop: cluster.stop,
  };
};

const behindSentinels = async (): Promise<Engine> => {
  const sentinel = await startSentinel();
  return { redis: sentinel.connection, disturb: sentinel.failOver, stop: sentinel.stop };
};

const behindPgBouncer = async (): Promise<Engine> => {
  const server = await startPostgres();
  const pooler = await startPgBouncer(server.connection, 2);
  const database = pooler.behind(await server.createDatabase());
  return { database, stop: () => pooler.stop().then(server.stop) };
};

const withStandby = async (): Promise<Engine> => {
  const server = await startReplicatedPostgres();
  return { database: await server.createDatabase(), disturb: server.failOver, stop: server.stop };
};

const ENGINES = [
  ['a Redis Cluster with TLS, a client certificate and an ACL user', whyNoRedis(), inCluster],
  ['a Redis behind Sentinels, with the same', whyNoRedis(), behindSentinels],
  ['PgBouncer with two connections', whyNoPgBouncer(), behindPgBouncer],
  ['a PostgreSQL whose standby is promoted', undefined, withStandby],
] as const;

for (const [name, why, start] of ENGINES) {
  describeUnless(why, `the walk on ${name}`, () => {
    let engine: Engine;
    let stack: TestStack;
    let number = 0;
    /** Answers of alice's key, which keeps its budget. */
    let answer: () => Promise<string>;

    beforeAll(async () => {
      engine = await start();
      const { username, password, host, port, dbname } = engine.database ?? {};
      const url = `postgres://${username}:${password}@${host}:${port}/${dbname}`;
      stack = await startTestStack(engine.database === undefined ? [] : ['--database', url]);
      if (engine.redis !== undefined) await moveTo(stack, engine.redis);
      const alice = await stack.client(
        await stack.ok('get', 'virtualkey', 'alice', '-o', 'jsonpath={.status.keyValue}'),
      );
      answer = () => answerTo(alice).catch(String);
    });
    beforeEach(async () => {
      await engine.disturb?.(number, stack);
      number += 1;
      await eventually(answer, (seen) => /^(200|401 )/.test(seen));
      // A resync meanwhile has reported the failover.
      await eventually(
        () => readiness(stack),
        (words) => !words.includes('False'),
      );
    });
    afterAll(async () => {
      expect(await stack?.stop()).toBe(0);
      await engine?.stop();
    });

    describeWalk(() => stack);
  });
}

async function readiness(stack: TestStack): Promise<string> {
  await stack.resync();
  return stack.ok('get', 'gwi,vk', '-o', 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}');
}

/** Names this Redis in the sample, applies it, and waits until the gateway counts there. */
async function moveTo(stack: TestStack, redis: RedisAddress): Promise<void> {
  const { type: _, otherServers: __, tls: ___, ...login } = redis;
  const values = { ...login, host: `rediss://${toServerText(redis)}`, port: `${redis.port}` };
  const keys = Object.fromEntries(Object.keys(values).map((key) => [`${key}Secret`, key]));
  const encoded = Object.fromEntries(Object.entries(values).map(([key, text]) => [key, btoa(text)]));
  const file = join(stack.folder, 'sample.yaml');
  const documents = readFileSync(file, 'utf8').split('\n---\n');
  const edited = documents.map((text) => {
    const object = parse(text);
    if (object.kind === 'Secret' && object.metadata.name === 'sample-store')
      return stringify({ ...object, data: encoded });
    if (object.kind !== 'GatewayInstance') return text;
    return stringify({ ...object, spec: { ...object.spec, redisSecretRef: { nameRef: 'sample-store', keys } } });
  });
  writeFileSync(file, edited.join('\n---\n'));
  await stack.ok('apply', '-f', file);
  const path = '{.status.conditions[?(@.type=="StoreReady")].message}';
  await eventually(
    async () => {
      await stack.resync();
      return stack.ok('get', 'gwi', 'sample', '-o', `jsonpath=${path}`);
    },
    (message) => message.includes(toServerText(redis)),
  );
}
