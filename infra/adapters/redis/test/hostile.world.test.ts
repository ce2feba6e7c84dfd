// Hostile counter stores: programs that try to harm the process that connects to them.
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import {
  REDIS_HARMS,
  type RedisHarm,
  startHostileRedis,
  startHostileUpstash,
  UPSTASH_HARMS,
  type UpstashHarm,
} from '../../../../test/hostile/redis.ts';
import { listen } from '../../../../test/hostile/server.ts';
import { createMemoryBudget } from '../../backends/reply-memory.ts';
import { createRedisCounterStore } from '../counter-store.ts';
import { probeShared } from '../probe.ts';
import { openRedis } from '../tcp.ts';
import { openUpstash } from '../upstash.ts';

const MIB = 1024 * 1024;
const workMemory = () => createMemoryBudget(10 * MIB).workMemory(MIB);

/** Errors that nobody would have caught: they end a process. */
const uncaught: unknown[] = [];
const note = (error: unknown) => void uncaught.push(error);
process.on('uncaughtException', note);
process.on('unhandledRejection', note);
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve));
  expect(uncaught.splice(0)).toEqual([]);
});

describe.each(Object.keys(REDIS_HARMS) as RedisHarm[])('a Redis that answers with %s', (harm) => {
  test.each([
    ['when it is dialled', false],
    ['when it is asked', true],
  ])('%s is unreachable, after little of it was read', async (_, isPolite) => {
    const server = await startHostileRedis(harm, isPolite);
    onTestFinished(server.stop);
    const address = { type: 'redis', host: '127.0.0.1', port: server.port, password: '', tls: false } as const;
    const health = await probeShared(address, 'one');
    expect(health).toMatchObject({ ok: false, reason: 'StoreUnreachable' });
    const redis = openRedis(address, { log: createMemoryLog(), workMemory: workMemory() });
    const accounts = createRedisCounterStore({
      evaluate: redis.evaluate,
      instanceUid: 'one',
      workMemory: workMemory(),
    });
    const calls = Array.from({ length: 3 }, () => accounts.accounts(true, 10));
    for (const { status } of await Promise.allSettled(calls)) expect(status).toBe('rejected');
    await redis.close();
    // Buffers of both sockets take some more, and the process connects several times.
    expect(server.sent()).toBeLessThan(40 * MIB);
  });
});

test.each(Object.keys(UPSTASH_HARMS) as UpstashHarm[])(
  'an Upstash that answers with %s is unreachable',
  async (harm) => {
    const server = await startHostileUpstash(harm);
    onTestFinished(server.stop);
    const connection = { type: 'upstash', url: server.url, token: 't' } as const;
    const isHarmless = harm === 'nothing but lists';
    const health = await probeShared(connection, 'one');
    expect(health).toMatchObject(isHarmless ? { ok: true } : { ok: false, reason: 'StoreUnreachable' });
    expect(JSON.stringify(health).length).toBeLessThan(2000);
    const accounts = createRedisCounterStore({
      evaluate: openUpstash(connection, { workMemory: workMemory() }).evaluate,
      instanceUid: 'one',
      workMemory: workMemory(),
    });
    await expect(accounts.accounts(true, 10)).rejects.toThrow();
  },
);

test('what an ended work has asked of its store is not waited for', async () => {
  const server = await startHostileRedis('noReply', true);
  onTestFinished(server.stop);
  const own = workMemory();
  const address = { type: 'redis', host: '127.0.0.1', port: server.port, password: '', tls: false } as const;
  const { evaluate } = openRedis(address, { log: createMemoryLog(), workMemory: own });
  const call = evaluate('return 1', 'key', []);
  setTimeout(own.end, 50);
  // Else the command would time out.
  await expect(call).rejects.toThrow(/closed/i);
});

test('a Redis that is loading, whenever it is asked how it is, is asked few times', async () => {
  let asked = 0;
  const info = `loading:1\r\nloading_eta_seconds:0\r\nfiller:${'x'.repeat(1000)}`;
  const server = await listen((socket) => {
    socket.on('data', (data) => {
      for (const command of data.toString('latin1').split(/(?=\*\d+\r\n\$)/)) {
        const isInfo = /\r\ninfo\r\n/i.test(command);
        asked += isInfo ? 1 : 0;
        socket.write(isInfo ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
      }
    });
  });
  onTestFinished(server.stop);
  const address = { type: 'redis', host: '127.0.0.1', port: server.port, password: '', tls: false } as const;
  const own = workMemory();
  const { evaluate } = openRedis(address, { log: createMemoryLog(), workMemory: own });
  setTimeout(own.end, 3000);
  await expect(evaluate('return 1', 'key', [])).rejects.toThrow();
  expect(asked).toBeLessThan(100);
});

test('a node of a Cluster that always names another node is dialled twice for a piece of work', async () => {
  let port = 0;
  const server = await listen((socket) => {
    socket.on('data', (data) => {
      for (const command of data.toString('latin1').split(/(?=\*\d+\r\n\$)/)) {
        if (/\r\nclient\r\n/i.test(command)) socket.write('+OK\r\n');
        else if (/\r\ninfo\r\n/i.test(command)) socket.write('$18\r\nredis_mode:cluster\r\n');
        else socket.write(`-MOVED 1 127.0.0.1:${port}\r\n`);
      }
    });
  });
  onTestFinished(server.stop);
  port = server.port;
  const address = { type: 'redis', host: '127.0.0.1', port, password: '', tls: false } as const;
  expect(await probeShared(address, 'one')).toMatchObject({ ok: false, message: expect.stringMatching(/MOVED/) });
  const own = workMemory();
  const { evaluate } = openRedis(address, { log: createMemoryLog(), workMemory: own });
  for (let call = 0; call < 3; call += 1) await expect(evaluate('return 1', 'key', [])).rejects.toThrow();
  own.end();
  expect(server.connections()).toBe(4);
});

test('a Redis that hangs up is dialled once for a piece of work', async () => {
  const server = await listen((socket) => socket.destroy());
  onTestFinished(server.stop);
  const address = { type: 'redis', host: '127.0.0.1', port: server.port, password: '', tls: false } as const;
  const own = workMemory();
  const { evaluate } = openRedis(address, { log: createMemoryLog(), workMemory: own });
  const wait = () => new Promise((resolve) => setTimeout(resolve, 400));
  for (let call = 0; call < 3; call += 1) {
    await expect(evaluate('return 1', 'key', [])).rejects.toThrow();
    await wait();
  }
  own.end();
  expect(server.connections()).toBe(1);
});
