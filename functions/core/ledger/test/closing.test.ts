import { beforeEach, describe, expect, test } from 'vitest';
import type { LedgerDatabase } from '../../ports/ledger-database.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, IMMORTAL } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const SECOND = 1000;
const key = scopeOf('key', 100n);
let scenario: Scenario;
let one: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  one = await scenario.start();
});

const booked = () => scenario.ledgerRows.all().map(({ kind, cost }) => [kind, cost]);
const logged = () =>
  scenario.log.lines.map(({ level, fields: { instance: _, account: __, accounts: ___, ...rest } }) => [level, rest]);
const sum = (): bigint => scenario.ledgerRows.all().reduce((all, { cost }) => all + cost, 0n);
const outcomeOf = async (ledger: StartableLedger, amount: bigint): Promise<string> =>
  (await scenario.tryReservation(ledger, requestOf(amount, key))).outcome;

test('an account that cannot be closed is tried again after pauses that grow, and closed when it can be', async () => {
  let attempts = 0;
  await scenario.start({
    ...IMMORTAL,
    failureOf: (method) => {
      if (method !== 'freeze') return undefined;
      attempts += 1;
      return attempts < 6 ? 'rejects' : undefined;
    },
  });
  await scenario.ended(one.close());
  const process = createProcess();
  const mortal = await scenario.start(process);
  await scenario.take(mortal, 30n, key);
  await scenario.time.advance(50);
  process.is.dead = true;
  await scenario.time.advance(21 * SECOND);
  expect(attempts).toBeLessThan(3);
  await scenario.time.advance(25 * SECOND);
  expect(attempts).toBe(6);
  expect(booked().filter(([kind]) => kind === 'expired')).toEqual([['expired', 30n]]);
});

describe('a process that died with its disk', () => {
  test('is charged once what it had at risk, when its lease ends, also without any request', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    await scenario.take(mortal, 30n, key);
    await scenario.time.advance(50);
    process.is.dead = true;
    await scenario.time.advance(15 * SECOND);
    expect(booked()).toEqual([]);
    await scenario.time.advance(10 * SECOND);
    expect(booked()).toEqual([['expired', 30n]]);
    expect(logged()).toEqual([['warn', { rows: 1, sum: '30' }]]);
    expect(await outcomeOf(one, 71n)).toBe('exceeded');
    expect(await outcomeOf(one, 70n)).toBe('reserved');
  });

  test('is charged what it told and had not booked, and not again what PostgreSQL has', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    await mortal.settle(await scenario.take(mortal, 20n, key), settlementOf(20n));
    await scenario.time.advance(500);
    scenario.database.behaviour = 'refuses';
    await mortal.settle(await scenario.take(mortal, 30n, key), settlementOf(25n));
    await scenario.time.advance(200);
    process.is.dead = true;
    scenario.database.behaviour = 'up';
    await scenario.time.advance(25 * SECOND);
    expect(booked()).toEqual([
      ['settled', 20n],
      ['expired', 25n],
    ]);
    expect(await scenario.spent(one, key)).toBe(45n);
  });

  test('whose batch was booked and whose answer was lost is not charged for it again', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    await mortal.settle(await scenario.take(mortal, 20n, key), settlementOf(20n));
    scenario.database.behaviour = 'loses';
    await scenario.time.advance(300);
    process.is.dead = true;
    scenario.database.behaviour = 'up';
    await scenario.time.advance(25 * SECOND);
    expect(booked()).toEqual([['settled', 20n]]);
    expect(await scenario.spent(one, key)).toBe(20n);
  });

  test('is charged once by several processes that close it at the same time', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    const others = [await scenario.start(), await scenario.start(), await scenario.start()];
    await scenario.take(mortal, 30n, key);
    await scenario.time.advance(50);
    process.is.dead = true;
    await scenario.time.advance(25 * SECOND);
    expect(booked()).toEqual([['expired', 30n]]);
    for (const other of others) expect(await scenario.spent(other, key)).toBe(30n);
  });

  test.each(['loses', 'refuses'] as const)(
    'is closed once also where the database %s answers meanwhile',
    async (behaviour) => {
      const process = createProcess();
      await scenario.take(await scenario.start(process), 30n, key);
      await scenario.time.advance(50);
      process.is.dead = true;
      scenario.database.behaviour = behaviour;
      await scenario.time.advance(25 * SECOND);
      scenario.database.behaviour = 'up';
      await scenario.time.advance(5 * SECOND);
      expect(booked()).toEqual([['expired', 30n]]);
      expect(await scenario.spent(one, key)).toBe(30n);
    },
  );

  test('leaves no escrow behind: idle money returns to others', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process);
    const wide = scopeOf('wide', 100_000n);
    for (let turn = 0; turn < 20; turn += 1) {
      await mortal.settle(await scenario.take(mortal, 100n, wide), settlementOf(100n));
      await scenario.time.advance(30);
    }
    process.is.dead = true;
    await scenario.time.advance(30 * SECOND);
    expect((await scenario.tryReservation(one, requestOf(98_000n, wide))).outcome).toBe('reserved');
  });
});

describe('a process that slept while its lease ended', () => {
  test('books its requests by their ids and corrects what was charged in its name', async () => {
    const sleeper = createProcess();
    const two = await scenario.start(sleeper);
    const reservation = await scenario.take(two, 60n, key);
    sleeper.is.frozen = true;
    await scenario.time.advance(25 * SECOND);
    expect(booked()).toEqual([['expired', 60n]]);
    sleeper.is.frozen = false;
    await scenario.time.advance(2 * SECOND);
    expect(logged()).toEqual([
      ['warn', { rows: 1, sum: '60' }],
      ['warn', { live: 1, unbooked: 0 }],
      ['info', { corrections: 1, sum: '-60' }],
    ]);
    await two.settle(reservation, settlementOf(20n));
    await scenario.time.advance(SECOND);
    expect(booked().toSorted()).toEqual([
      ['correction', -60n],
      ['expired', 60n],
      ['settled', 20n],
    ]);
    expect(await scenario.spent(one, key)).toBe(20n);
    expect(await outcomeOf(one, 80n)).toBe('reserved');
  });

  test('corrects each counter once, where it held money of several', async () => {
    const team = scopeOf('team', 500n, { kind: 'team' });
    const sleeper = createProcess();
    const two = await scenario.start(sleeper);
    const reservation = await scenario.take(two, 60n, key, team);
    sleeper.is.frozen = true;
    await scenario.time.advance(25 * SECOND);
    sleeper.is.frozen = false;
    await scenario.time.advance(2 * SECOND);
    await two.release(reservation);
    await scenario.time.advance(SECOND);
    const kinds = booked().map(([kind]) => kind);
    expect(kinds.filter((kind) => kind === 'correction')).toHaveLength(2);
    expect([await scenario.spent(one, key), await scenario.spent(one, team)]).toEqual([0n, 0n]);
  });

  test('finds its account closed also where the first thing it does is to settle', async () => {
    const sleeper = createProcess();
    const two = await scenario.start(sleeper);
    const reservation = await scenario.take(two, 60n, key);
    sleeper.is.frozen = true;
    await scenario.time.advance(25 * SECOND);
    sleeper.is.frozen = false;
    void two.settle(reservation, settlementOf(20n));
    await scenario.time.advance(4 * SECOND);
    expect(sum()).toBe(20n);
    expect(await scenario.spent(one, key)).toBe(20n);
  });

  test('again and again, is charged what its requests cost', async () => {
    const sleeper = createProcess();
    const two = await scenario.start(sleeper);
    const reservation = await scenario.take(two, 60n, key);
    for (let turn = 0; turn < 3; turn += 1) {
      sleeper.is.frozen = true;
      await scenario.time.advance(25 * SECOND);
      sleeper.is.frozen = false;
      await scenario.time.advance(3 * SECOND);
    }
    await two.settle(reservation, settlementOf(20n));
    await scenario.time.advance(2 * SECOND);
    expect(sum()).toBe(20n);
    expect(await scenario.spent(one, key)).toBe(20n);
  });

  test('admits nothing by escrow that it no longer has', async () => {
    const sleeper = createProcess();
    const two = await scenario.start(sleeper);
    const reservation = await scenario.take(two, 90n, key);
    sleeper.is.frozen = true;
    await scenario.time.advance(25 * SECOND);
    sleeper.is.frozen = false;
    void two.settle(reservation, settlementOf(90n));
    expect(await outcomeOf(two, 50n)).toBe('exceeded');
  });
});

describe('a disk that outlives its process', () => {
  test('that was copied charges nobody twice: holds are booked by their ids', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process, scenario.folder);
    await scenario.take(mortal, 30n, key);
    await mortal.settle(await scenario.take(mortal, 20n, key), settlementOf(20n));
    process.is.dead = true;
    const copy = { records: [...scenario.folder.records] };
    const two = await scenario.start(IMMORTAL, scenario.folder);
    const three = await scenario.start(IMMORTAL, copy);
    await scenario.time.advance(30 * SECOND);
    expect(sum()).toBe(50n);
    for (const ledger of [one, two, three]) expect(await scenario.spent(ledger, key)).toBe(50n);
  });

  test('whose account another process has closed is corrected by its successor', async () => {
    const process = createProcess();
    const mortal = await scenario.start(process, scenario.folder);
    await scenario.take(mortal, 30n, key);
    await mortal.settle(await scenario.take(mortal, 20n, key), settlementOf(10n));
    process.is.dead = true;
    await scenario.time.advance(30 * SECOND);
    const successor = await scenario.start(IMMORTAL, scenario.folder);
    await scenario.time.advance(2 * SECOND);
    expect(sum()).toBe(40n);
    expect(await scenario.spent(successor, key)).toBe(40n);
    expect(scenario.folder.records.filter(({ type }) => type !== 'account')).toEqual([]);
  });
});

test('a process that closed itself and told less than it booked is audited before its escrow returns', async () => {
  const two = await scenario.start();
  const reservation = await scenario.take(two, 60n, key);
  await scenario.time.advance(50);
  scenario.store.behaviour = 'refuses';
  void two.settle(reservation, settlementOf(60n));
  await scenario.ended(two.close());
  scenario.store.behaviour = 'up';
  expect(booked()).toEqual([['settled', 60n]]);
  for (let second = 0; second < 25; second += 1) {
    const { outcome } = await scenario.tryReservation(one, requestOf(41n, key));
    expect(outcome).not.toBe('reserved');
    await scenario.time.advance(SECOND);
  }
  expect(await scenario.spent(one, key)).toBe(60n);
});

test.each([
  ['PostgreSQL is away', { sums: () => Promise.reject(new Error('refused')) }],
  ['batches are booked all the time', { rows: movingRows() }],
])('the escrow of a process that closed itself stays while no audit succeeds: %s', async (_, broken) => {
  const two = await scenario.start();
  const reservation = await scenario.take(two, 60n, key);
  await scenario.time.advance(50);
  scenario.store.behaviour = 'refuses';
  void two.settle(reservation, settlementOf(60n));
  await scenario.ended(two.close());
  scenario.store.behaviour = 'up';
  const { part } = scenario.database;
  scenario.database.part = { ...part, ...broken };
  await scenario.time.advance(30 * SECOND);
  scenario.database.part = part;
  expect(await outcomeOf(one, 41n)).not.toBe('reserved');
  // The longest pause between two attempts.
  await scenario.time.advance(16 * SECOND);
  expect(await scenario.spent(one, key)).toBe(60n);
  expect(await outcomeOf(one, 40n)).toBe('reserved');
});

/** Rows that show another batch at each reading. */
function movingRows(): LedgerDatabase['accountRows'] {
  let booked = 0;
  return async (accounts) => {
    booked += 1;
    return new Map(
      accounts.map((id) => [
        id,
        { bookedBatch: booked, callNumber: 1, isClosed: false, isCharged: false, isClosing: false },
      ]),
    );
  };
}
