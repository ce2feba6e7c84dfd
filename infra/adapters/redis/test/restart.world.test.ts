import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { AccountCall } from '#core/ports/counter-store.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { createRedisCounterStore } from '../counter-store.ts';
import { openRedis } from '../tcp.ts';

const counter = { scopeId: 'key', window: { start: 0, end: 10 ** 15 } };

describeUnless(whyNoRedis(), 'a Redis that was killed', () => {
  /** A process whose calls are repeated while the server is away. */
  const open = async (server: TestRedis) => {
    const redis = openRedis(server.connection, { log: createMemoryLog() });
    onTestFinished(redis.close);
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: 'one' });
    await accounts.begin(1, true);
    await accounts.load(1, [{ ...counter, spent: 5n }]);
    const account = randomUUID();
    let number = 0;
    const spend = async (amount: bigint) => {
      number += 1;
      const line = { ...counter, limit: 100n, spend: amount, risk: 0n, returned: 0n, registered: 0n, ahead: 0n };
      const call: AccountCall = {
        epoch: 1,
        account,
        number,
        lease: 60_000,
        deadline: 10 ** 15,
        batch: 1,
        bookedBatch: 0,
        changes: [line],
        requests: [],
        rateChanges: [],
        previousAccounts: [],
        finishesAccount: false,
      };
      return eventually(
        () => accounts.call(call).catch(() => undefined),
        (answer) => answer !== undefined,
      );
    };
    return { accounts, spend };
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
    const { spend } = await open(server);
    expect(await spend(1n)).toMatchObject({ outcome: 'done' });
    await server.kill();
    await server.start();
    expect(await spend(1n)).toMatchObject({ outcome: 'epoch', epoch: 0 });
    expect(await command(server, 'KEYS', '*')).toEqual([]);
  });

  test('and comes back with an old snapshot tells every process that it had answered since that it is behind', async () => {
    const server = await start();
    const [one, two] = [await open(server), await open(server)];
    await one.spend(1n);
    await two.spend(1n);
    await command(server, 'SAVE');
    await one.spend(1n);
    await server.kill();
    await server.start();
    // Other processes may call: each account has its own number, and the count of all calls shows the rest.
    expect(await two.spend(1n)).toMatchObject({ outcome: 'done', callCount: 3 });
    expect(await one.spend(1n)).toMatchObject({ outcome: 'stale', why: 'behind' });
  });

  test('and comes back with its log has everything', async () => {
    const server = await start(['--appendonly', 'yes', '--appendfsync', 'always']);
    const { accounts, spend } = await open(server);
    await spend(7n);
    await server.kill();
    await server.start();
    expect(await spend(1n)).toMatchObject({ outcome: 'done', counters: [{ spent: 13n }] });
    expect(await accounts.read([counter])).toMatchObject([{ spent: 13n }]);
  });
});
