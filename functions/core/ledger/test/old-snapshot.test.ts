// A store that goes back to an old snapshot counts as wiped (LEDGER 6).
import { beforeEach, describe, expect, test } from 'vitest';
import {
  createProcess,
  createScene,
  heldOf,
  requestOf,
  type Scene,
  scopeOf,
  settlementOf,
} from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scene: Scene;

beforeEach(() => {
  scene = createScene();
});

const rebuilds = (): number => scene.counted.get('gateway_operator_ledger_rebuilds_total') ?? 0;
const costs = (): bigint[] => scene.entries.entries().map(({ cost }) => cost);
const sum = (): bigint => costs().reduce((all, cost) => all + cost, 0n);
const tryHold = (ledger: Parameters<Scene['tryHold']>[0], amount: bigint) =>
  scene.tryHold(ledger, requestOf(amount, key));

describe('a store that goes back to an old snapshot', () => {
  const spend = async (ledger: Parameters<Scene['take']>[0], amount: bigint): Promise<void> => {
    await scene.ended(ledger.settle(await scene.take(ledger, amount, key), settlementOf(amount)));
    await scene.time.advance(500);
  };

  test('is noticed by a live process, and rebuilt: nothing is lost', async () => {
    const one = await scene.start();
    await spend(one, 20n);
    const restore = scene.snapshot();
    await spend(one, 30n);
    restore();
    await scene.time.advance(3000);
    expect(await scene.spent(one, key)).toBe(50n);
    expect(await tryHold(one, 51n)).toMatchObject({ outcome: 'exceeded' });
    expect(rebuilds()).toBe(2);
  });

  test('is noticed by an idle process within some seconds', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    await spend(one, 20n);
    const restore = scene.snapshot();
    await spend(one, 30n);
    await scene.ended(one.close());
    await scene.time.advance(5000);
    restore();
    await scene.time.advance(5000);
    expect(await scene.spent(two, key)).toBe(50n);
  });

  test('is noticed by a new process before it admits anything', async () => {
    const one = await scene.start();
    await spend(one, 20n);
    const restore = scene.snapshot();
    await spend(one, 30n);
    await scene.ended(one.close());
    restore();
    const two = await scene.start();
    expect(await tryHold(two, 51n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryHold(two, 50n)).toMatchObject({ outcome: 'reserved' });
  });

  test('is noticed by the successor on the same disk', async () => {
    const process = createProcess();
    const one = await scene.start(process, scene.folder);
    await spend(one, 20n);
    const restore = scene.snapshot();
    await spend(one, 30n);
    process.is.dead = true;
    restore();
    const two = await scene.start(undefined, scene.folder);
    expect(await tryHold(two, 51n)).toMatchObject({ outcome: 'exceeded' });
    await scene.time.advance(1000);
    expect(sum()).toBe(50n);
  });

  test('is noticed between the marking of an earlier account and the first call of the next', async () => {
    const process = createProcess();
    const one = await scene.start(process, scene.folder);
    const restore = scene.snapshot();
    await scene.take(one, 20n, key);
    await scene.time.advance(500);
    process.is.dead = true;
    const { part } = scene.store;
    const mark: typeof part.freeze = async (...of) => {
      const marking = await part.freeze(...of);
      restore();
      return marking;
    };
    scene.store.part = { ...part, freeze: mark };
    const two = await scene.start(undefined, scene.folder);
    expect(await scene.spent(two, key)).toBe(20n);
    expect(await tryHold(two, 81n)).toMatchObject({ outcome: 'exceeded' });
    expect(rebuilds()).toBe(2);
  });

  test('is noticed by whoever closes the account of a dead process', async () => {
    const process = createProcess();
    const [one, two] = [await scene.start(process), await scene.start()];
    await scene.take(two, 1n, key);
    const restore = scene.snapshot();
    for (let turn = 0; turn < 5; turn += 1) await spend(one, 10n);
    process.is.dead = true;
    restore();
    await scene.time.advance(30_000);
    expect(await scene.spent(two, key)).toBe(50n);
  });

  test('that is no older than the last call changes nothing', async () => {
    const one = await scene.start();
    const hold = await scene.take(one, 20n, key);
    const restore = scene.snapshot();
    restore();
    await one.settle(hold, settlementOf(20n));
    await scene.time.advance(5000);
    expect(rebuilds()).toBe(1);
    expect(await scene.spent(one, key)).toBe(20n);
  });

  test('is not suspected where only an answer was lost while another process booked', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    await scene.take(one, 1n, key);
    const { part } = scene.store;
    const own = scene.calls[0]?.account;
    // The first process's call is done, and its answers are lost for seconds while the other goes on.
    scene.store.part = {
      ...part,
      async call(call) {
        const reply = await part.call(call);
        if (call.account === own) throw new Error('lost');
        return reply;
      },
    };
    await scene.time.advance(300);
    for (let turn = 0; turn < 5; turn += 1) await spend(two, 2n);
    await scene.time.advance(4000);
    scene.store.part = part;
    await scene.time.advance(3000);
    expect(rebuilds()).toBe(1);
    expect(heldOf((await tryHold(one, 1n)).value).amount).toBe(1n);
  });
});
