import { execFileSync, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LayoutMismatch } from '#core/ports/backends.ts';
import { FIGURES_PAGE, MAX_COUNTERS, MAX_REQUESTS } from '#core/ports/counter-store.ts';
import { rateChangeOf, ratesOf } from '#core/ports/test/counter-store.rates.scenario.promises.ts';
import {
  type AccountsUnderTest,
  accountsScenario,
  changeOf,
  type LimitedCounter,
  type Process,
  requestOf,
} from '#core/ports/test/counter-store.scenario.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { underClock } from '../../../../test/support/redis-clock.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { createRedisCounterStore } from '../counter-store.ts';
import { openRedis, type RedisConnection } from '../tcp.ts';

const LUA = 'infra/adapters/redis/account.lua';
const hasCli = spawnSync('redis-cli', ['--version']).status === 0;

describeUnless(whyNoRedis() ?? (hasCli ? undefined : 'there is no redis-cli'), 'the script of accounts', () => {
  let server: TestRedis;
  let redis: RedisConnection;
  let admin: Redis;
  let under: AccountsUnderTest;
  let uid: string;
  beforeAll(async () => {
    server = await startRedis();
    redis = openRedis(server.connection, { log: createMemoryLog() });
    admin = new Redis({ port: server.connection.port, host: '127.0.0.1' });
  });
  afterAll(async () => {
    admin?.disconnect();
    await redis?.close();
    await server?.stop();
  });
  const createUnder = async (instanceUid: string): Promise<AccountsUnderTest> => {
    let now = Date.now();
    const store = createRedisCounterStore({ instanceUid, evaluate: underClock(redis.evaluate, () => now) });
    await store.begin(1, true);
    return {
      store,
      epoch: 1,
      now: () => now,
      advance: async (millis) => {
        now += millis;
      },
    };
  };
  beforeEach(async () => {
    uid = randomUUID();
    under = await createUnder(uid);
  });
  const { loadCounter, start, read, freeze, forget, pagesOf } = accountsScenario(() => under);

  /** Everything that the server has of the instance. A hash has no order: a read may change it. */
  const dump = async (): Promise<ReadonlyArray<readonly [string, unknown]>> => {
    const keys = (await admin.keys(`{${uid}}:*`)).sort();
    const contentOf = async (key: string) =>
      (await admin.type(key)) === 'hash' ? admin.hgetall(key) : admin.call('ZRANGE', key, '0', '-1', 'WITHSCORES');
    return Promise.all(keys.map(async (key) => [key, await contentOf(key)] as const));
  };

  test('is run by redis-cli as it is', () => {
    const run = (operation: string, argument: object): unknown => {
      const words = ['-p', `${server.connection.port}`, '--eval', LUA, `{${uid} by hand}:meta`, ',', operation];
      return JSON.parse(execFileSync('redis-cli', [...words, JSON.stringify(argument)], { encoding: 'utf8' }));
    };
    const name = `0:${10 ** 15} key`;
    const call = {
      epoch: 1,
      account: 'one',
      callNumber: 1,
      lease: 60_000,
      deadline: 10 ** 15,
      batch: 1,
      bookedBatch: 0,
    };
    expect(run('begin', { epoch: 1, isNew: true })).toEqual({ epoch: 1 });
    run('load', { epoch: 1, sums: [[name, '5']] });
    const asks = [{ amount: '20', minAmount: '20', counters: [0] }];
    expect(
      run('call', {
        ...call,
        changes: [[name, '100', '7']],
        requests: asks,
        rateChanges: [],
        accountsToForget: [],
        finishesAccount: false,
      }),
    ).toMatchObject({
      outcome: 'done',
      storeCalls: 1,
      liveAccounts: 1,
      counters: [['12 20', '20 20 0 1 7', false]],
      replies: [{ outcome: 'reserved', amount: '20' }],
    });
    expect(run('accounts', { isEnded: false, max: 10 })).toEqual({
      accounts: [{ account: 'one', callNumber: 1, unbookedBatch: 1 }],
    });
  });

  /** Loads so many counters whose windows last a second. */
  const loadShort = async (count: number, label: string): Promise<void> => {
    const window = { start: under.now(), end: under.now() + 1000 };
    const sums = Array.from({ length: count }, (_, index) => ({ scopeId: `${label}-${index}`, window, spent: 0n }));
    await under.store.load(1, sums);
  };
  const loadedCount = async (): Promise<number> => (await under.store.loaded(0, 1)).total;

  test('forgets counters of windows that are over faster than others are loaded', async () => {
    for (let portion = 0; portion < 12; portion += 1) await loadShort(500, `old-${portion}`);
    await under.advance(62_000);
    await loadShort(500, 'first');
    expect(await loadedCount()).toBe(6000 - 5000 + 500);
    await under.advance(100);
    await loadShort(500, 'second');
    expect(await loadedCount()).toBe(1000);
  });

  test('forgets the empty figures of an account with their counter, and keeps both while there is anything in them', async () => {
    const window = { start: under.now(), end: under.now() + 1000 };
    const [used, ended] = ['used', 'ended'].map((scopeId) => ({ scopeId, window, limit: 10n ** 9n }));
    if (used === undefined || ended === undefined) return expect.fail();
    await under.store.load(1, [
      { ...used, spent: 0n },
      { ...ended, spent: 0n },
    ]);
    const one = start();
    await one.call({ changes: [changeOf(used, { spend: 1n, risk: 5n }), changeOf(ended, { spend: 1n })] });
    await one.call({ batch: 2, bookedBatch: 1 });
    await under.advance(62_000);
    await one.call({ batch: 2, bookedBatch: 1 });
    expect(await admin.hkeys(`{${uid}}:c`)).toEqual([expect.stringMatching(/ used$/)]);
    expect(await admin.hkeys(`{${uid}}:a:${one.account}`)).toEqual([expect.stringMatching(/ used$/)]);
  });

  test.each([
    [50, 3],
    [2000, 1],
  ])('with %i live accounts, loads of short windows read them at most %i times in 200 ms', async (count, max) => {
    for (let at = 0; at < count; at += 1) await start().call();
    for (let portion = 0; portion < 20; portion += 1) {
      await loadShort(150, `old-${portion}`);
      await under.advance(10);
    }
    await under.advance(61_000 - 200);
    let reads = 0;
    const monitor = await admin.duplicate().monitor();
    monitor.on('monitor', (_: string, words: ReadonlyArray<string>) => {
      if (words.join(' ').toLowerCase() === `zrange {${uid}}:l 0 -1`) reads += 1;
    });
    for (let portion = 0; portion < 20; portion += 1) {
      await under.advance(10);
      await loadShort(3, `new-${portion}`);
    }
    await admin.ping();
    monitor.disconnect();
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThanOrEqual(max);
  });

  test.each([
    ['30 processes that have used all counters', 30, 3000, [666, 666, 1332]],
    ['30 processes that have used few', 30, 10, [3000, 3000, 3000]],
    ['2,100 requests on Workers', 2100, 10, [3000, 3000, 3000]],
  ])(
    'a step that drops counters reads at most 20,000 figures, or 10 of each account, and then pauses: %s',
    async (_, count, used, expected) => {
      for (let portion = 0; portion < 6; portion += 1) await loadShort(500, `old-${portion}`);
      const figures = (await admin.zrange(`{${uid}}:e`, 0, `${used - 1}`)).flatMap((name) => [name, '0 0 3']);
      for (let at = 0; at < count; at += 1) {
        const one = start();
        await one.call();
        await admin.hset(`{${uid}}:a:${one.account}`, ...figures);
      }
      await under.advance(62_000);
      const dropped: number[] = [];
      for (const loaded of [1, 2, 3]) {
        await loadShort(1, `new-${loaded}`);
        dropped.push(3000 + loaded - (await loadedCount()));
        await under.advance(150);
      }
      expect(dropped).toEqual(expected);
    },
  );

  test('frees a full Redis by itself, once windows are over', async () => {
    await loadShort(500, 'old');
    await under.advance(62_000);
    await admin.config('SET', 'maxmemory-policy', 'noeviction');
    await admin.config('SET', 'maxmemory', '1mb');
    try {
      await expect(admin.set('x', '1')).rejects.toThrow('OOM');
      for (let second = 0; second < 6; second += 1) {
        await under.store.accounts(false, 1);
        await under.advance(1000);
      }
      expect(await loadedCount()).toBe(0);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
  });

  describe('changes nothing', () => {
    const HOSTILE = {
      'an amount of thirty digits': { changes: [{ spend: 10n ** 30n }] },
      'a negative risk': { changes: [{ risk: -1n }] },
      'a negative return': { changes: [{ returned: -1n }] },
      'an ask for a line that is not there': { changes: [{}], requests: [requestOf(1n, { counters: [7] })] },
      'an ask that names a line twice': { changes: [{}], requests: [requestOf(1n, { counters: [0, 0] })] },
      'a negative ask': { changes: [{}], requests: [requestOf(-1n)] },
    };
    test.each(Object.entries(HOSTILE))(
      'for a call with %s, whatever else is in it',
      async (_, { changes, ...more }) => {
        const [good, bad] = [await loadCounter('good', 100n), await loadCounter('bad', 100n)];
        const one = start();
        await one.call({ changes: [changeOf(good)], requests: [requestOf(30n)] });
        const before = await dump();
        const changed = [...changes.map((part) => changeOf(bad, part)), changeOf(good, { spend: 10n, risk: 20n })];
        await expect(one.send({ changes: changed, ...more })).rejects.toThrow(/amount|size|counters/);
        expect(await dump()).toEqual(before);
        expect(before.length).toBeGreaterThan(4);
      },
    );
  });

  test('a full call of the largest size is done in one step', async () => {
    const counters = await Promise.all(
      Array.from({ length: MAX_COUNTERS }, (_, at) => loadCounter(`scope ${at}`, 10n ** 12n)),
    );
    const asks = Array.from({ length: MAX_REQUESTS }, (_, at) =>
      requestOf(3n, { counters: [at, at + 64, at + 128, at + 192] }),
    );
    const reply = await start().call({ changes: counters.map((of) => changeOf(of, { spend: 2n })), requests: asks });
    expect(reply.replies.filter(({ outcome }) => outcome === 'reserved')).toHaveLength(MAX_REQUESTS);
    expect(reply.counters).toHaveLength(MAX_COUNTERS);
    expect(new Set(reply.counters.map(({ spent, escrowOfAll }) => `${spent} ${escrowOfAll}`))).toEqual(
      new Set(['2 3']),
    );
  });

  /** An account with so many figures, which are loaded counters; its lease has ended. */
  const startLarge = async (size: number): Promise<Process> => {
    const window = { start: under.now() - 1000, end: under.now() + 3_600_000 };
    const counters = Array.from({ length: size }, (_, at) => ({ scopeId: `scope ${at}`, window, limit: 1000n }));
    for (let from = 0; from < size; from += FIGURES_PAGE)
      await under.store.load(
        1,
        counters.slice(from, from + FIGURES_PAGE).map((of) => ({ ...of, spent: 1n })),
      );
    const one = start(1000);
    for (let from = 0; from < size; from += MAX_COUNTERS) {
      const lines = counters.slice(from, from + MAX_COUNTERS).map((of) => changeOf(of, { carriedOver: 5n, risk: 5n }));
      await one.call({ changes: lines });
    }
    await under.advance(1001);
    return one;
  };

  test('no step of a closing depends on the size of the account', async () => {
    /** The largest argument, reply and number of hash fields that one step of a closing reads or writes. */
    const largestStep = async (size: number): Promise<number> => {
      const one = await startLarge(size);
      const sizes: number[] = [];
      const monitor = await admin.duplicate().monitor();
      monitor.on('monitor', (_: string, words: ReadonlyArray<string>) => sizes.push(words.join('').length));
      expect(await freeze(one.account, false)).toMatchObject({ outcome: 'frozen' });
      const pages = await pagesOf(one.account);
      sizes.push(...pages.map((page) => JSON.stringify(page, (_, of) => `${of}`).length));
      expect(new Set(pages.flatMap(({ figures }) => figures.map(({ scopeId }) => scopeId))).size).toBe(size);
      await forget(one.account, true);
      monitor.disconnect();
      const keys = await admin.hlen(`{${uid}}:a:${one.account}`);
      expect([keys, await under.store.accounts(false, 10)]).toEqual([0, []]);
      return Math.max(...sizes);
    };
    const small = await largestStep(1000);
    expect(await largestStep(34_000)).toBeLessThan(2 * small);
  });

  test('a closing returns the requests in flight of thousands of rates in several steps', async () => {
    const RATES = 5000;
    const inRate = (at: number) => rateChangeOf(`rate ${at}`, { parallel: 2 });
    const one = start(1000);
    for (let from = 0; from < RATES; from += 250)
      await one.call({ rateChanges: Array.from({ length: 250 }, (_, at) => inRate(from + at)) });
    await under.advance(1001);
    const left: unknown[] = [];
    for (let closing = 0; closing < 3; closing += 1) {
      expect(await freeze(one.account, false)).toMatchObject({ outcome: 'frozen', figures: [] });
      await under.store.forget(1, one.account, true, []);
      const listed = await under.store.accounts(true, 1);
      left.push([await admin.hlen(`{${uid}}:p`), listed.length]);
    }
    expect(left).toEqual([
      [3000, 1],
      [1000, 1],
      [0, 0],
    ]);
    expect((await admin.keys(`{${uid}}:i:*`)).length).toBe(0);
    expect(await start().send({ account: one.account })).toMatchObject({ outcome: 'stale', why: 'accountClosed' });
  });

  /** Accounts of requests on Workers, each of them with spend in the counter. */
  const spendOnce = async (count: number, of: LimitedCounter, isEnded: boolean): Promise<void> => {
    for (let at = 0; at < count; at += 1) {
      const one = start();
      await one.report(of, { spend: 1n });
      if (isEnded) await one.call({ batch: 2, bookedBatch: 1, finishesAccount: true });
    }
  };

  test('no audit depends on the number of accounts that reserve, or that have ended before it', async () => {
    const key = await loadCounter('key', 10n ** 9n);
    /** The commands of an audit. */
    const stepsOf = async (accounts: number): Promise<number> => {
      await spendOnce(accounts, key, true);
      for (let at = 0; at < accounts; at += 1) await start().report(key, { carriedOver: 1n, risk: 1n });
      const { storeCalls: storeCallsBefore } = await start().call();
      let steps = 0;
      const monitor = await admin.duplicate().monitor();
      monitor.on('monitor', () => {
        steps += 1;
      });
      const [[spent] = [0n]] = [await read(key)].flat();
      const terms = { storeCallsBefore, deadline: under.now() + 1000 };
      const reply = await under.store.audit(1, [{ ...key, spent }], new Map(), terms);
      expect(reply).toMatchObject({ outcome: 'done', differences: [], changedAccounts: [] });
      await admin.ping();
      monitor.disconnect();
      return steps;
    };
    const few = await stepsOf(5);
    expect(few).toBeGreaterThan(3);
    expect(await stepsOf(1000)).toBeLessThan(few + 3);
  });

  describe('with requests in flight', () => {
    const [FEW, MANY, TIMES] = [64, 16 * 64, 20];
    const parallelOf = (parallel: number) => ratesOf([{ id: 'key', parallel }]);
    const end = rateChangeOf('key', { parallel: -1 });

    /** An instance with so many requests in flight; each is an account of its own, as on Workers. */
    interface Load {
      readonly count: number;
      readonly under: AccountsUnderTest;
      readonly key: LimitedCounter;
      readonly inFlight: Process[];
    }
    const createLoad = async (count: number): Promise<Load> => {
      under = await createUnder(randomUUID());
      return { count, under, key: await loadCounter('key', 10n ** 9n), inFlight: [] };
    };
    const startRequest = async ({ key, inFlight }: Load): Promise<void> => {
      const one = start();
      const requests = [requestOf(1n, { rates: parallelOf(10 ** 9) })];
      expect((await one.call({ changes: [changeOf(key)], requests })).replies).toMatchObject([{ outcome: 'reserved' }]);
      inFlight.push(one);
    };
    const oldest = ({ inFlight }: Load): Process => inFlight.shift() ?? expect.fail();
    const STEPS: Readonly<Record<string, (load: Load) => Promise<unknown>>> = {
      'a start': startRequest,
      'a refusal': async ({ key }) => {
        const requests = [requestOf(1n, { rates: parallelOf(1) })];
        const { replies } = await start().call({ changes: [changeOf(key)], requests });
        expect(replies).toMatchObject([{ outcome: 'limited', rate: 'parallel' }]);
      },
      'an end': (load) => oldest(load).call({ changes: [changeOf(load.key, { spend: 1n })], rateChanges: [end] }),
      'the last call of an account': (load) => oldest(load).call({ finishesAccount: true }),
      'a closing': async (load) => {
        const { account } = oldest(load);
        await under.store.freeze(1, account, true);
        await under.store.forget(1, account, true, []);
      },
    };
    const processorTime = async (): Promise<number> => {
      const times = (await admin.info('cpu')).matchAll(/^used_cpu_(?:sys|user):([0-9.]+)/gm);
      return [...times].reduce((sum, [, seconds]) => sum + Number(seconds), 0);
    };
    /** The processor time of Redis for some of these steps, and the length of the commands of another one. */
    const costOf = async (step: (load: Load) => Promise<unknown>, load: Load) => {
      ({ under } = load);
      while (load.inFlight.length < load.count + TIMES + 1) await startRequest(load);
      const before = await processorTime();
      for (let time = 0; time < TIMES; time += 1) await step(load);
      const time = (await processorTime()) - before;
      let length = 0;
      const monitor = await admin.duplicate().monitor();
      monitor.on('monitor', (_: string, words: ReadonlyArray<string>) => {
        length += words.join(' ').length;
      });
      await step(load);
      await admin.ping();
      monitor.disconnect();
      return { time, length };
    };

    test.each(Object.entries(STEPS))('%s takes no more of Redis with many than with few', async (_, step) => {
      const loads = [await createLoad(FEW), await createLoad(MANY)] as const;
      const [few, many] = [await costOf(step, loads[0]), await costOf(step, loads[1])];
      expect(many.length, 'commands').toBeLessThan(1.1 * few.length);
      // Times that are measured together, the best of several: steps that read all accounts took 4 to 6 times as long.
      let growth = many.time / few.time;
      for (let attempt = 0; attempt < 5 && growth > 2; attempt += 1) {
        const time = (await costOf(step, loads[0])).time;
        growth = Math.min(growth, (await costOf(step, loads[1])).time / time);
      }
      expect(growth, 'processor time').toBeLessThan(2);
    });
  });

  test('an audit that finds too many accounts with unbooked spend compares nothing, and is not done', async () => {
    const key = await loadCounter('key', 10n ** 9n);
    await spendOnce(501, key, false);
    const terms = { storeCallsBefore: 0, deadline: under.now() + 1000, acceptsChangedAccounts: true };
    const reply = await under.store.audit(1, [{ ...key, spent: 10_000n }], new Map(), terms);
    expect(reply.outcome === 'done' && reply.changedAccounts).toHaveLength(1);
    expect(await read(key)).toEqual([[501n, 0n]]);
  });

  test('only rates expire, and a wiped instance leaves nothing but what expires', async () => {
    const key = await loadCounter('key', 100n);
    const rates = ratesOf([{ id: 'key', requests: 10, tokens: 100, parallel: 2 }], { tokens: 5 });
    await start().call({ changes: [changeOf(key, { spend: 1n })], requests: [requestOf(1n, { rates })] });
    for (const name of await admin.keys(`{${uid}}:*`))
      expect((await admin.pttl(name)) > 0, name).toBe(name.includes('}:r:'));
    await under.store.clear();
    expect(await admin.keys(`{${uid}}:*`)).toEqual([]);
  });

  test.each([
    ['an earlier ledger', ['set', 'epoch', '3']],
    ['another version', ['hset', 'meta', 'layout', 'accounts 9']],
  ] as const)('keys of %s are met with one sentence that says what to do', async (_, [command, name, ...more]) => {
    await admin.del(`{${uid}}:meta`);
    await admin.call(command, `{${uid}}:${name}`, ...more);
    const sentence =
      /^the store has the layout ".*" and this version reads ".*": stop all processes .* and delete the keys/;
    await expect(start().send()).rejects.toThrow(sentence);
    await expect(under.store.begin(7, true)).rejects.toThrow(LayoutMismatch);
    await expect(under.store.begin(7, true)).rejects.toThrow(sentence);
    await admin.del(...(await admin.keys(`{${uid}}:*`)));
    expect(await under.store.begin(7, true)).toBe(7);
  });

  test('a server that has lost the script is sent it again', async () => {
    await admin.script('FLUSH');
    expect(await start().call()).toMatchObject({ outcome: 'done' });
  });

  test('instances on one server do not see each other', async () => {
    const other = createRedisCounterStore({ instanceUid: `${uid}-other`, evaluate: redis.evaluate });
    await other.begin(1, true);
    const key = await loadCounter('key', 100n, 5n);
    expect(await read(key)).toEqual([[5n, 0n]]);
    expect(await other.read([key])).toEqual([undefined]);
    expect(() => createRedisCounterStore({ instanceUid: 'a}b', evaluate: redis.evaluate })).toThrow('braces');
  });
});
