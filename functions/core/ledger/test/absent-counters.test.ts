// Requests with counters that the store lacks: they delay no other request.
import { expect, test } from 'vitest';
import { IMMORTAL, slow } from './processes.fixture.ts';
import { createScenario, outcome, requestOf, scopeOf, settlementOf } from './scenario.promises.ts';

/** The number of replies to one client in 4 s, while this many other keys have windows of one second. */
async function repliesBeside(keys: number): Promise<number> {
  const scenario = createScenario();
  const { time } = scenario;
  scenario.store.part = slow(scenario.store.part, time, () => 2);
  scenario.database.part = slow(scenario.database.part, time, () => 5);
  const ledger = await scenario.start(IMMORTAL, { records: [] });
  const pause = (millis: number) => new Promise<void>((resolve) => void time.timer(millis, resolve));
  let replies = 0;
  const client = async () => {
    for (;;) {
      const reserved = await ledger.reserve(requestOf(100n, scopeOf('key', 1_000_000n)));
      await pause(20);
      if (!reserved.ok) continue;
      await ledger.settle(reserved.value, settlementOf(50n));
      replies += 1;
    }
  };
  const budget = { duration: '1s', alignment: 'Rolling', limit: '1' } as const;
  const other = async (index: number) => {
    await pause((index * 1000) / keys);
    for (;;) {
      void ledger.reserve(requestOf(5n, scopeOf(`other-${index}`, 1n, { budget })));
      await pause(1000);
    }
  };
  for (let index = 0; index < 10; index += 1) void client();
  for (let index = 0; index < keys; index += 1) void other(index);
  for (let millis = 0; millis < 4000; millis += 1) await time.advance(1);
  return replies;
}

test('hundreds of keys whose counters are absent each second take no reply from another key', async () => {
  const alone = await repliesBeside(0);
  expect(alone).toBeGreaterThan(1000);
  expect(await repliesBeside(600)).toBeGreaterThanOrEqual(alone - 20);
});

test('hundreds of keys whose budgets per key are counted for the first time delay no key without one, also if one fails', async () => {
  const scenario = createScenario();
  const { time } = scenario;
  const { part } = scenario.database;
  const portions: number[] = [];
  scenario.database.part = {
    ...part,
    countFirst: async (counters) => {
      portions.push(counters.length);
      if (counters.some(({ scopeId }) => scopeId === 'per-key-0')) throw new Error('it takes too long');
      await new Promise<void>((resolve) => void time.timer(counters.length, resolve));
      await part.countFirst(counters);
    },
  };
  const ledger = await scenario.start();
  const keys = Array.from({ length: 300 }, (_, index) => {
    const key = scopeOf(`key-${index}`, 1000n);
    return ledger.reserve(requestOf(100n, key, scopeOf(`per-key-${index}`, 100n, { countedFrom: key.scopeId })));
  });
  await time.advance(10);
  const other = scopeOf('other', 1000n);
  const { outcome: first, millis } = await scenario.tryReservation(ledger, requestOf(100n, other));
  expect([first, millis < 50]).toEqual(['reserved', true]);
  const { value } = await scenario.ended(Promise.all(keys));
  expect(value.map(outcome).filter((each) => each !== 'reserved').length).toBeLessThanOrEqual(1);
  expect(Math.max(...portions)).toBe(8);
});
