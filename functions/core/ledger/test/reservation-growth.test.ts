import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import type { Nano } from '../../ports/money.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, createScene, requestOf, type Scene, scopeOf, settlementOf } from './scenario.promises.ts';

let scene: Scene;
let ledger: StartableLedger;
let process: ReturnType<typeof createProcess>;

beforeEach(async () => {
  scene = createScene();
  process = createProcess();
  ledger = await scene.start(process, scene.folder);
});

async function grow(hold: Reservation, by: Nano, of = ledger) {
  const { value, millis } = await scene.ended(of.grow(hold, by));
  return { outcome: value.ok ? 'grown' : value.failure.reason, value, millis };
}

/** Escrow in the store, of all accounts. */
async function heldIn({ scopeWindows }: Reservation): Promise<ReadonlyArray<Nano | undefined>> {
  return (await scene.store.part.read(scopeWindows)).map((one) => one?.reserved);
}

const booked = () => scene.entries.entries().map(({ kind, cost }) => ({ kind, cost }));

/** Kills the process; its successor reads the disk. */
async function restart(): Promise<StartableLedger> {
  process.is.dead = true;
  const next = await scene.start(createProcess(), scene.folder);
  await scene.time.advance(1000);
  return next;
}

describe('a hold grows', () => {
  test('by the whole amount in all of its scopes, and that may be spent', async () => {
    const [key, team, open] = [scopeOf('key', 100n), scopeOf('team', 90n, { kind: 'team' }), scopeOf('open')];
    const hold = await scene.take(ledger, 60n, key, team, open);
    expect(await grow(hold, 30n)).toMatchObject({ outcome: 'grown' });
    expect(hold.amount).toBe(90n);
    expect(await heldIn(hold)).toEqual([90n, 90n, 0n]);
    await scene.ended(ledger.settle(hold, settlementOf(90n)));
    await scene.time.advance(500);
    expect(scene.counted.get('gateway_operator_ledger_overruns_total')).toBe(0);
    expect(booked()).toEqual([{ kind: 'settled', cost: 90n }]);
  });

  test('never above a limit, in none of its scopes: all or none', async () => {
    const [key, team] = [scopeOf('key', 100n), scopeOf('team', 80n, { kind: 'team' })];
    const hold = await scene.take(ledger, 60n, key, team);
    const { value } = await grow(hold, 21n);
    expect(value).toMatchObject({ ok: false, failure: { reason: 'busy', scope: { scopeId: 'team' } } });
    expect(hold.amount).toBe(60n);
    await scene.time.advance(2000);
    expect(await heldIn(hold)).toEqual([60n, 60n]);
    expect(await grow(hold, 20n)).toMatchObject({ outcome: 'grown' });
  });

  test('not where spend has taken what is left', async () => {
    const key = scopeOf('key', 100n);
    const hold = await scene.take(ledger, 60n, key);
    await scene.ended(ledger.settle(await scene.take(ledger, 30n, key), settlementOf(31n)));
    const { value } = await grow(hold, 71n);
    expect(value).toMatchObject({ ok: false, failure: { reason: 'exceeded', spent: 31n, limit: 100n } });
  });

  test('without waiting for others, whose holds it is refused for immediately', async () => {
    const key = scopeOf('key', 100n);
    const hold = await scene.take(ledger, 60n, key);
    await scene.take(await scene.start(), 30n, key);
    expect(await grow(hold, 20n)).toMatchObject({ outcome: 'busy', millis: expect.closeTo(0, -1) });
  });

  test('before requests that wait in line', async () => {
    const key = scopeOf('key', 100n);
    const hold = await scene.take(ledger, 60n, key);
    const waiting = ledger.reserve(requestOf(50n, key));
    await scene.time.advance(100);
    expect(await grow(hold, 40n)).toMatchObject({ outcome: 'grown', millis: expect.closeTo(0, -1) });
    expect((await scene.ended(waiting)).value).toMatchObject({ failure: { reason: 'busy' } });
  });

  test('in memory where the escrow that is at hand suffices', async () => {
    const key = scopeOf('key', 100_000n);
    const hold = await scene.take(ledger, 100n, key);
    await scene.time.advance(300);
    const asks = () => scene.calls.reduce((sum, call) => sum + call.requests.length, 0);
    const before = asks();
    expect(await grow(hold, 10n)).toMatchObject({ outcome: 'grown' });
    expect(asks()).toBe(before);
    await scene.time.advance(2000);
    await scene.ended(ledger.release(hold));
    await scene.time.advance(3000);
    expect(await heldIn(hold)).toEqual([0n]);
  });

  test('not where a limit has fallen below it meanwhile', async () => {
    const hold = await scene.take(ledger, 60n, scopeOf('key', 1000n));
    await scene.time.advance(300);
    await scene.tryHold(ledger, requestOf(1n, scopeOf('key', 65n)));
    expect(await grow(hold, 10n)).toMatchObject({ outcome: 'busy' });
  });

  test('not by nothing where it is free, and not after its end', async () => {
    const key = scopeOf('key', 100n);
    const [free, ended] = [await scene.take(ledger, 0n, key), await scene.take(ledger, 10n, key)];
    await scene.take(ledger, 90n, key);
    expect(await grow(free, 0n)).toMatchObject({ outcome: 'grown' });
    await scene.ended(ledger.release(ended));
    expect(await grow(ended, 1n)).toMatchObject({ outcome: 'unavailable' });
    await scene.time.advance(2000);
    expect(await heldIn(ended)).toEqual([90n]);
  });

  test('in the window that it was made in, also when that is over', async () => {
    const month = 30 * 86_400_000;
    const key = scopeOf('key', 100n, { anchor: scene.time.clock.now() + 400 - month });
    const hold = await scene.take(ledger, 60n, key);
    await scene.time.advance(3000);
    const next = await scene.take(ledger, 70n, key);
    expect(await grow(hold, 41n)).toMatchObject({ outcome: 'busy' });
    expect(await grow(hold, 40n)).toMatchObject({ outcome: 'grown' });
    expect([await heldIn(hold), await heldIn(next)]).toEqual([[100n], [70n]]);
    await scene.ended(ledger.settle(hold, settlementOf(95n)));
    await scene.time.advance(3000);
    expect(await heldIn(hold)).toEqual([0n]);
  });

  test('not where it ends meanwhile: what the store grants goes back', async () => {
    const key = scopeOf('key', 100n);
    const hold = await scene.take(ledger, 60n, key);
    await scene.time.advance(3000);
    const growing = grow(hold, 30n);
    const settled = ledger.settle(hold, settlementOf(5n));
    expect(await growing).toMatchObject({ outcome: 'unavailable' });
    await scene.ended(settled);
    await scene.time.advance(3000);
    expect(await heldIn(hold)).toEqual([0n]);
    expect(booked()).toEqual([{ kind: 'settled', cost: 5n }]);
  });

  test('not while the store is silent: refused in time, and what it grants later goes back', async () => {
    const key = scopeOf('key', 100n);
    const hold = await scene.take(ledger, 60n, key);
    await scene.time.advance(3000);
    scene.store.behaviour = 'hangs';
    const refused = await grow(hold, 30n);
    expect(refused).toMatchObject({ outcome: 'unavailable', millis: 900 });
    scene.store.behaviour = 'up';
    await scene.time.advance(5000);
    expect([hold.amount, await heldIn(hold)]).toEqual([60n, [60n]]);
  });

  test('not when the ledger stops', async () => {
    const hold = await scene.take(ledger, 60n, scopeOf('key', 100n));
    const closing = ledger.close();
    expect((await ledger.grow(hold, 1n)).ok).toBe(false);
    await scene.ended(closing);
  });

  test('and is held whole again in a store that was wiped', async () => {
    const hold = await scene.take(ledger, 60n, scopeOf('key', 100n));
    await grow(hold, 30n);
    scene.wipe();
    await scene.time.advance(5000);
    const key = scopeOf('key', 100n);
    expect((await scene.tryHold(ledger, requestOf(11n, key))).outcome).toBe('busy');
    expect((await scene.tryHold(ledger, requestOf(10n, key))).outcome).toBe('reserved');
  });
});

describe('a hold that has grown is charged', () => {
  const key = scopeOf('key', 100n);
  const spentOf = async (of: StartableLedger, scope: ScopePolicy) => scene.spent(of, scope);

  test('at its whole size when its process dies: the journal has the growth before it counts', async () => {
    const hold = await scene.take(ledger, 60n, key);
    await grow(hold, 30n);
    expect(await spentOf(await restart(), key)).toBe(90n);
    expect(booked()).toContainEqual({ kind: 'settled', cost: 90n });
  });

  test('at its size before, when its process dies before the journal has the growth', async () => {
    const hold = await scene.take(ledger, 60n, key);
    scene.journal.behaviour = 'hangs';
    let isGrown = false;
    void ledger.grow(hold, 30n).then(() => (isGrown = true));
    await scene.time.advance(500);
    expect(isGrown).toBe(false);
    process.is.dead = true;
    scene.journal.behaviour = 'up';
    expect(await spentOf(await restart(), key)).toBe(60n);
  });

  test('at its whole size, in whichever order a folder has its records', async () => {
    await grow(await scene.take(ledger, 60n, key), 30n);
    scene.folder.records.reverse();
    expect(await spentOf(await restart(), key)).toBe(90n);
  });

  test('at what it has streamed since, where that is known', async () => {
    const hold = await scene.take(ledger, 60n, key);
    await grow(hold, 30n);
    ledger.trackStream(hold, () => 35n);
    await scene.time.advance(1500);
    expect(await spentOf(await restart(), key)).toBe(35n);
  });

  test('at its whole size when process and disk are gone', async () => {
    const hold = await scene.take(ledger, 60n, key);
    await grow(hold, 30n);
    await scene.time.advance(1000);
    process.is.dead = true;
    const other = await scene.start();
    await scene.time.advance(30_000);
    expect(await spentOf(other, key)).toBe(90n);
    expect(booked()).toEqual([{ kind: 'expired', cost: 90n }]);
  });

  test('nothing where it is released, whatever died after that', async () => {
    const hold = await scene.take(ledger, 60n, key);
    await grow(hold, 30n);
    await scene.ended(ledger.release(hold));
    expect(await spentOf(await restart(), key)).toBe(0n);
  });
});
