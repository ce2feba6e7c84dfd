import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createMemoryLog } from '#adapters/memory/log.ts';
import type { StoreCall } from '#core/ports/store.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../test/redis.ts';
import { eventually } from '../../../test/stack.ts';
import { createRedisStore } from './store.ts';
import { openRedis } from './tcp.ts';

const missing = whyNoRedis();
const nothing: StoreCall = { epoch: 1, settles: [], releases: [], renewals: [], loads: [], holds: [] };
const counter = { scopeId: 'key', window: { start: 0, end: 10 ** 15 } };
const hold = (id: string) => ({
  ...{ id, amount: 10n, least: 10n, counters: [{ ...counter, limit: 100n }], deadline: 10 ** 15, lease: 60_000 },
  note: { charges: [counter], model: 'small', identifier: 's-1' },
});

describe.skipIf(missing !== undefined)(`a Redis that was killed${missing === undefined ? '' : ` (${missing})`}`, () => {
  const open = (server: TestRedis) => {
    const redis = openRedis(server.connection, { log: createMemoryLog() });
    let opened = 0;
    const store = createRedisStore({ evaluate: redis.evaluate, instanceUid: 'one', onOpened: () => (opened += 1) });
    return { store, close: redis.close, opened: () => opened };
  };
  const command = async (server: TestRedis, ...words: [string, ...string[]]): Promise<unknown> => {
    const { host, port } = server.connection;
    const redis = new Redis({ host, port, protocol: 2 });
    return redis.call(...words).finally(() => redis.disconnect());
  };
  const answers = async (server: TestRedis) => {
    await server.start();
    return async (under: ReturnType<typeof open>) =>
      eventually(
        () =>
          under.store
            .read([counter])
            .then(([spent]) => ({ spent }))
            .catch(() => undefined),
        (seen) => seen !== undefined,
      );
  };

  test('and comes back with an old snapshot counts as wiped: counters are absent, its old holds are never charged', async () => {
    const server = await startRedis();
    onTestFinished(server.stop);
    const under = open(server);
    await under.store.call({
      ...nothing,
      loads: [{ ...counter, spent: 5n }],
      holds: [hold('a'), hold('b'), hold('c')],
    });
    await under.store.call({ ...nothing, settles: [{ id: 'c', cost: 1n }] });
    await command(server, 'SAVE');
    await under.store.call({
      ...nothing,
      settles: [
        { id: 'a', cost: 10n },
        { id: 'b', cost: 10n },
      ],
    });
    await server.kill();
    const read = await answers(server);
    expect(await read(under)).toEqual({ spent: undefined });
    const reply = await under.store.call({ ...nothing, settles: [{ id: 'a', cost: 10n }], holds: [hold('d')] });
    expect(reply).toMatchObject({ settles: [{ outcome: 'unknown' }], holds: [{ outcome: 'absent' }], expired: [] });
    expect(under.opened()).toBe(2);
    // Nothing of what the snapshot had is left.
    expect([await command(server, 'KEYS', '*')].flat().sort()).toEqual(['{one}:epoch', '{one}:life']);
    await under.close();
  });

  test('and has every call on disk goes on with them: holds and counters are as they were', async () => {
    const server = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always']);
    onTestFinished(server.stop);
    const under = open(server);
    await under.store.call({ ...nothing, loads: [{ ...counter, spent: 5n }], holds: [hold('a'), hold('b')] });
    await under.store.call({ ...nothing, settles: [{ id: 'a', cost: 7n }] });
    await server.kill();
    const read = await answers(server);
    expect(await read(under)).toEqual({ spent: 12n });
    const reply = await under.store.call({ ...nothing, settles: [{ id: 'b', cost: 1n }] });
    expect(reply).toMatchObject({ settles: [{ outcome: 'settled' }] });
    expect(await under.store.read([counter])).toEqual([13n]);
    await under.close();
  });

  test('is forgotten by whoever comes back first; the next process finds what the first has counted since', async () => {
    const server = await startRedis();
    onTestFinished(server.stop);
    const [one, two] = [open(server), open(server)];
    await one.store.call({ ...nothing, loads: [{ ...counter, spent: 5n }] });
    expect(await two.store.read([counter])).toEqual([5n]);
    await command(server, 'SAVE');
    await server.kill();
    const read = await answers(server);
    expect(await read(one)).toEqual({ spent: undefined });
    await one.store.call({ ...nothing, loads: [{ ...counter, spent: 8n }] });
    expect(await read(two)).toEqual({ spent: 8n });
    await Promise.all([one.close(), two.close()]);
  });
});
