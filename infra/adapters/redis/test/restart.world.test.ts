import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis, type TestRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { openProcess } from '../../../../test/support/store-process.ts';

describeUnless(whyNoRedis(), 'a Redis that was killed', () => {
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
    const { spend } = await openProcess(server.connection);
    expect(await spend(1n)).toMatchObject({ outcome: 'done' });
    await server.kill();
    await server.start();
    expect(await spend(1n)).toMatchObject({ outcome: 'epoch', epoch: 0 });
    expect(await command(server, 'KEYS', '*')).toEqual([]);
  });

  test('and comes back with an old snapshot tells every process that it had answered since that it is behind', async () => {
    const server = await start();
    const [one, two] = [await openProcess(server.connection), await openProcess(server.connection)];
    await one.spend(1n);
    await two.spend(1n);
    await command(server, 'SAVE');
    await one.spend(1n);
    await server.kill();
    await server.start();
    // Other processes may call: each account has its own number, and the count of all calls shows the rest.
    expect(await two.spend(1n)).toMatchObject({ outcome: 'done', storeCalls: 3 });
    expect(await one.spend(1n)).toMatchObject({ outcome: 'stale', why: 'wentBack' });
  });

  test('and comes back with its log has everything', async () => {
    const server = await start(['--appendonly', 'yes', '--appendfsync', 'always']);
    const { read, spend } = await openProcess(server.connection);
    await spend(7n);
    await server.kill();
    await server.start();
    expect(await spend(1n)).toMatchObject({ outcome: 'done', counters: [{ spent: 13n }] });
    expect(await read()).toMatchObject([{ spent: 13n }]);
  });
});
