import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { StoreCall, StoreReply } from '#core/ports/store.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { eventually } from '../../../test/eventually.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../test/redis.ts';
import { describeUnless } from '../../../test/skip-unless.ts';
import { createRedisStore } from './store.ts';
import { openRedis } from './tcp.ts';

const missing = whyNoRedis();
const nothing: StoreCall = { epoch: 1, settles: [], releases: [], renewals: [], loads: [], holds: [] };
const counter = { scopeId: 'key', window: { start: 0, end: 10 ** 15 } };
const hold = (id: string) => ({
  ...{ id, amount: 10n, minAmount: 10n, counters: [{ ...counter, limit: 100n }], deadline: 10 ** 15, lease: 60_000 },
  note: { charges: [counter], model: 'small', identifier: 's-1' },
});

describeUnless(missing, 'a Redis that was killed', () => {
  /** A process that counts its acknowledged calls. */
  const open = async (server: TestRedis, process: string) => {
    const redis = openRedis(server.connection, { log: createMemoryLog() });
    const store = createRedisStore({ evaluate: redis.evaluate, instanceUid: 'one' });
    await store.begin(1);
    let acknowledged = 0;
    const call = async (part: Partial<StoreCall>) => {
      const reply = await eventually(
        () => store.call({ ...nothing, from: { process, acknowledged }, ...part }).catch(() => undefined),
        (answer) => answer !== undefined,
      );
      if (reply?.outcome === 'done') acknowledged = reply.calls;
      return reply;
    };
    onTestFinished(redis.close);
    return { store, call };
  };
  const command = async (server: TestRedis, ...words: [string, ...string[]]): Promise<unknown> => {
    const { host, port } = server.connection;
    const redis = new Redis({ host, port, protocol: 2 });
    return redis.call(...words).finally(() => redis.disconnect());
  };
  const start = async (more: ReadonlyArray<string> = []): Promise<TestRedis> => {
    const server = await startRedis(more);
    onTestFinished(server.stop);
    return server;
  };

  test('and comes back empty does nothing: it has no epoch', async () => {
    const server = await start();
    const one = await open(server, 'one');
    await one.call({ loads: [{ ...counter, spent: 5n }], holds: [hold('a')] });
    await server.kill();
    await server.start();
    expect(await one.call({ settles: [{ id: 'a', cost: 1n }], holds: [hold('b')] })).toMatchObject({
      outcome: 'epoch',
      epoch: 0,
    });
    expect(await command(server, 'KEYS', '*')).toEqual([]);
  });

  test('and comes back with an old snapshot refuses every process that it had answered since', async () => {
    const server = await start();
    const [one, two] = [await open(server, 'one'), await open(server, 'two')];
    await one.call({ loads: [{ ...counter, spent: 5n }], holds: [hold('a')] });
    await two.call({});
    await command(server, 'SAVE');
    await one.call({ settles: [{ id: 'a', cost: 10n }] });
    await server.kill();
    await server.start();
    // Other processes may call: each has its own count.
    for (let times = 0; times < 3; times += 1) expect(await two.call({})).toMatchObject({ outcome: 'done' });
    expect(await one.call({ holds: [hold('b')] })).toMatchObject({ outcome: 'epoch', epoch: 1 });
    // A process that lost nothing learns it from the marks of the others in PostgreSQL.
    expect(await two.call({ marks: new Map([['one', 2]]) })).toMatchObject({ outcome: 'epoch', epoch: 1 });
    expect(await two.call({ marks: new Map([['one', 1]]) })).toMatchObject({ outcome: 'done' });
  });

  test('and begins the next epoch is empty', async () => {
    const server = await start();
    const one = await open(server, 'one');
    await one.call({ loads: [{ ...counter, spent: 5n }], holds: ['a', 'b', 'c', 'd'].map(hold) });
    await one.call({ settles: [{ id: 'a', cost: 10n }], releases: [{ id: 'b', lease: 1000 }] });
    expect(await one.store.begin(2)).toBe(2);
    expect(await one.store.begin(1)).toBe(2);
    expect(await command(server, 'KEYS', '*')).toEqual(['{one}:epoch']);
    const reply = await one.store.call({ ...nothing, epoch: 2, settles: [{ id: 'c', cost: 1n }], holds: [hold('e')] });
    expect(reply).toMatchObject({ settles: [{ outcome: 'unknown' }], holds: [{ outcome: 'absent' }], expired: [] });
    await one.store.clear();
    expect(await command(server, 'KEYS', '*')).toEqual([]);
  });

  test('and has every call on disk keeps its holds and counters', async () => {
    const server = await start(['--appendonly', 'yes', '--appendfsync', 'always']);
    const one = await open(server, 'one');
    await one.call({ loads: [{ ...counter, spent: 5n }], holds: [hold('a'), hold('b')] });
    await one.call({ settles: [{ id: 'a', cost: 7n }] });
    await server.kill();
    await server.start();
    const reply = (await one.call({ settles: [{ id: 'b', cost: 1n }] })) as StoreReply;
    expect(reply.settles).toEqual([{ outcome: 'settled' }]);
    expect(await one.store.read([counter])).toEqual([13n]);
  });
});
