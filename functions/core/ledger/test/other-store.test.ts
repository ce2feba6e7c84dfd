// A rollout to another store, such as another Redis: processes with both stores run at the same time.
import { beforeEach, expect, test } from 'vitest';
import type { StartableLedger } from '../ledger.ts';
import { IMMORTAL, type Process } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 1000n);
let scenario: Scenario;
beforeEach(() => {
  scenario = createScenario();
});

const booked = (): bigint => scenario.ledgerRows.all().reduce((sum, { cost }) => sum + cost, 0n);

/** A process on the old store that has spent 10. */
async function startOld(): Promise<StartableLedger> {
  const ledger = await scenario.start(IMMORTAL, { records: [] });
  await scenario.ended(ledger.settle(await scenario.take(ledger, 10n, key), settlementOf(10n)));
  return ledger;
}

/** A process that is starting on a new store. */
function startNew(process: Process = scenario.createOtherStore()): StartableLedger {
  const ledger = scenario.process(process, { records: [] });
  void ledger.start().catch(() => undefined);
  return ledger;
}

/** Each process takes 20 at a time for 20 s; the number of reservations of each. */
async function spendAll(ledgers: ReadonlyArray<StartableLedger>): Promise<ReadonlyArray<number>> {
  const end = scenario.time.clock.now() + 20_000;
  const reservations = ledgers.map(() => 0);
  const run = async (ledger: StartableLedger, index: number) => {
    while (scenario.time.clock.now() < end) {
      const reserved = await ledger.reserve(requestOf(20n, key));
      if (reserved.ok) {
        reservations[index] = (reservations[index] ?? 0) + 1;
        await ledger.settle(reserved.value, settlementOf(20n));
      }
      await new Promise<void>((resolve) => void scenario.time.timer(50, resolve));
    }
  };
  for (const [index, ledger] of ledgers.entries()) void run(ledger, index);
  for (let step = 0; step < 500; step += 1) await scenario.time.advance(50);
  return reservations;
}

/** The address of the scenario's store. */
const SAME = 'store';

test.each([
  [1, 1, 'another address', undefined],
  [4, 2, 'another address', undefined],
  [1, 1, 'the same address', SAME],
  [4, 2, 'the same address', SAME],
])(
  '%i processes on the old store and %i on a new one at %s never spend more than the budget together',
  async (old, count, _, address) => {
    const ledgers: StartableLedger[] = [];
    for (let index = 0; index < old; index += 1) ledgers.push(await startOld());
    const process = scenario.createOtherStore(address);
    for (let index = 0; index < count; index += 1) ledgers.push(startNew(process));
    await spendAll(ledgers);
    expect(booked()).toBeLessThanOrEqual(1000n);
    expect(booked()).toBeGreaterThan(900n);
  },
);

test('the new store is used once it replies: the old processes refuse, and serve again if the new one ends', async () => {
  const old = await startOld();
  const other = startNew();
  await scenario.time.advance(6000);
  expect((await scenario.tryReservation(other, requestOf(20n, key))).outcome).toBe('reserved');
  expect((await scenario.tryReservation(old, requestOf(20n, key))).value).toMatchObject({
    ok: false,
    failure: { reason: 'unavailable', why: expect.stringContaining('another counter store') },
  });
  await scenario.ended(other.close());
  await scenario.time.advance(6000);
  expect((await scenario.tryReservation(old, requestOf(20n, key))).outcome).toBe('reserved');
});

test('a new store that does not reply changes nothing for the processes on the old one', async () => {
  const old = await startOld();
  const process = scenario.createOtherStore();
  if (process.otherStore !== undefined) process.otherStore.store.behaviour = 'refuses';
  const other = startNew(process);
  await scenario.time.advance(10_000);
  expect((await scenario.tryReservation(old, requestOf(20n, key))).outcome).toBe('reserved');
  expect((await scenario.tryReservation(other, requestOf(20n, key))).outcome).not.toBe('reserved');
});

test.each([
  ['another address', undefined],
  ['the same address', SAME],
])('a new store at %s that takes no writes changes nothing for the processes on the old one', async (_, address) => {
  const old = await startOld();
  const process = scenario.createOtherStore(address);
  const { store } = process.otherStore ?? scenario;
  const { part } = store;
  const begin: typeof part.begin = (epoch, isNew) =>
    isNew ? Promise.reject(new Error('READONLY')) : part.begin(epoch, isNew);
  store.part = { ...part, begin };
  const other = startNew(process);
  const { epoch } = await scenario.epochs.part.state();
  await scenario.time.advance(10_000);
  expect((await scenario.epochs.part.state()).epoch).toBe(epoch);
  expect((await scenario.tryReservation(old, requestOf(20n, key))).outcome).toBe('reserved');
  expect((await scenario.tryReservation(other, requestOf(20n, key))).outcome).not.toBe('reserved');
  // The store takes writes from now on.
  store.part = part;
  await scenario.time.advance(6000);
  expect((await scenario.tryReservation(other, requestOf(20n, key))).outcome).toBe('reserved');
});

test.each([
  ['another address', undefined],
  ['the same address', SAME],
])('a process books what has ended, while it waits for one on a store at %s, and when it stops', async (_, address) => {
  const old = await startOld();
  const [first, second] = [await scenario.take(old, 100n, key), await scenario.take(old, 100n, key)];
  startNew(scenario.createOtherStore(address));
  await scenario.time.advance(6000);
  void old.settle(first, settlementOf(30n));
  await scenario.time.advance(3000);
  expect(booked()).toBe(40n);
  void old.settle(second, settlementOf(50n));
  await scenario.ended(old.close());
  expect(booked()).toBe(90n);
});

test('of two servers behind one address the later process keeps its own, and the other refuses and says why', async () => {
  const old = await startOld();
  const other = startNew(scenario.createOtherStore(SAME));
  await scenario.time.advance(6000);
  expect((await scenario.tryReservation(other, requestOf(20n, key))).outcome).toBe('reserved');
  expect((await scenario.tryReservation(old, requestOf(20n, key))).value).toMatchObject({
    ok: false,
    failure: { reason: 'unavailable', why: expect.stringContaining('another server behind the address') },
  });
  await scenario.time.advance(20_000);
  expect((await scenario.epochs.part.state()).epoch).toBeLessThan(5);
  await scenario.ended(other.close());
  await scenario.time.advance(6000);
  expect((await scenario.tryReservation(old, requestOf(20n, key))).outcome).toBe('reserved');
});

test('a process whose address leads to another server now connects again, and serves with the others', async () => {
  const old = await startOld();
  const process = scenario.createOtherStore(SAME);
  const part = process.otherStore?.store.part;
  scenario.store.part.reconnect = () => {
    if (part !== undefined) scenario.store.part = part;
  };
  const other = startNew(process);
  await scenario.time.advance(6000);
  for (const ledger of [old, other])
    expect((await scenario.tryReservation(ledger, requestOf(20n, key))).outcome).toBe('reserved');
});
