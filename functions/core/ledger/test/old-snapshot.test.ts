// A store that goes back to an old snapshot counts as wiped (LEDGER 6).
import { beforeEach, describe, expect, test } from 'vitest';
import { createProcess } from './processes.fixture.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scenario: Scenario;

beforeEach(() => {
  scenario = createScenario();
});

const rebuilds = (): number => scenario.counted.get('gateway_operator_ledger_rebuilds_total') ?? 0;
const costs = (): bigint[] => scenario.ledgerRows.all().map(({ cost }) => cost);
const sum = (): bigint => costs().reduce((all, cost) => all + cost, 0n);
const tryReservation = (ledger: Parameters<Scenario['tryReservation']>[0], amount: bigint) =>
  scenario.tryReservation(ledger, requestOf(amount, key));

describe('a store that goes back to an old snapshot', () => {
  const spend = async (ledger: Parameters<Scenario['take']>[0], amount: bigint): Promise<void> => {
    await scenario.ended(ledger.settle(await scenario.take(ledger, amount, key), settlementOf(amount)));
    await scenario.time.advance(500);
  };

  test('is noticed by a live process, and rebuilt: nothing is lost', async () => {
    const one = await scenario.start();
    await spend(one, 20n);
    const restore = scenario.snapshot();
    await spend(one, 30n);
    restore();
    await scenario.time.advance(3000);
    expect(await scenario.spent(one, key)).toBe(50n);
    expect(await tryReservation(one, 51n)).toMatchObject({ outcome: 'exceeded' });
    expect(rebuilds()).toBe(2);
  });

  test('is noticed by an idle process within some seconds', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    await spend(one, 20n);
    const restore = scenario.snapshot();
    await spend(one, 30n);
    await scenario.ended(one.close());
    await scenario.time.advance(5000);
    restore();
    await scenario.time.advance(5000);
    expect(await scenario.spent(two, key)).toBe(50n);
  });

  test('is noticed by a new process before it admits anything', async () => {
    const one = await scenario.start();
    await spend(one, 20n);
    const restore = scenario.snapshot();
    await spend(one, 30n);
    await scenario.ended(one.close());
    restore();
    const two = await scenario.start();
    expect(await tryReservation(two, 51n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryReservation(two, 50n)).toMatchObject({ outcome: 'reserved' });
  });

  test('is noticed by the successor on the same disk', async () => {
    const process = createProcess();
    const one = await scenario.start(process, scenario.folder);
    await spend(one, 20n);
    const restore = scenario.snapshot();
    await spend(one, 30n);
    process.is.dead = true;
    restore();
    const two = await scenario.start(undefined, scenario.folder);
    expect(await tryReservation(two, 51n)).toMatchObject({ outcome: 'exceeded' });
    await scenario.time.advance(1000);
    expect(sum()).toBe(50n);
  });

  test('is noticed between the marking of an earlier account and the first call of the next', async () => {
    const process = createProcess();
    const one = await scenario.start(process, scenario.folder);
    const restore = scenario.snapshot();
    await scenario.take(one, 20n, key);
    await scenario.time.advance(500);
    process.is.dead = true;
    const { part } = scenario.store;
    const mark: typeof part.freeze = async (...of) => {
      const marking = await part.freeze(...of);
      restore();
      return marking;
    };
    scenario.store.part = { ...part, freeze: mark };
    const two = await scenario.start(undefined, scenario.folder);
    expect(await scenario.spent(two, key)).toBe(20n);
    expect(await tryReservation(two, 81n)).toMatchObject({ outcome: 'exceeded' });
    expect(rebuilds()).toBe(2);
  });

  test('is noticed by whoever closes the account of a dead process', async () => {
    const process = createProcess();
    const [one, two] = [await scenario.start(process), await scenario.start()];
    await scenario.take(two, 1n, key);
    const restore = scenario.snapshot();
    for (let turn = 0; turn < 5; turn += 1) await spend(one, 10n);
    process.is.dead = true;
    restore();
    await scenario.time.advance(30_000);
    expect(await scenario.spent(two, key)).toBe(50n);
  });

  test('that is no older than the last call changes nothing', async () => {
    const one = await scenario.start();
    const reservation = await scenario.take(one, 20n, key);
    const restore = scenario.snapshot();
    restore();
    await one.settle(reservation, settlementOf(20n));
    await scenario.time.advance(5000);
    expect(rebuilds()).toBe(1);
    expect(await scenario.spent(one, key)).toBe(20n);
  });

  test('is not suspected where only an answer was lost while another process booked', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    await scenario.take(one, 1n, key);
    const { part } = scenario.store;
    const own = scenario.calls[0]?.account;
    // The first process's call is done, and its answers are lost for seconds while the other continues.
    scenario.store.part = {
      ...part,
      async call(call) {
        const reply = await part.call(call);
        if (call.account === own) throw new Error('lost');
        return reply;
      },
    };
    await scenario.time.advance(300);
    for (let turn = 0; turn < 5; turn += 1) await spend(two, 2n);
    await scenario.time.advance(4000);
    scenario.store.part = part;
    await scenario.time.advance(3000);
    expect(rebuilds()).toBe(1);
    expect(heldOf((await tryReservation(one, 1n)).value).amount).toBe(1n);
  });
});
