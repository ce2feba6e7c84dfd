// Ledgers of one request each, as on Workers.
import { expect, test } from 'vitest';
import { createStoreMemory } from './deps.ts';
import { createScene, heldOf, requestOf, scopeOf, settlementOf } from './scene.promises.ts';

const key = scopeOf('key-1', 1000n);

function createVisits() {
  const scene = createScene();
  const isolate = createStoreMemory();
  const visit = async (lives = () => true) => {
    const ledger = await scene.start({ before: lives, after: lives, isDead: () => !lives(), isolate });
    const { value } = await scene.ended(ledger.hold({ ...requestOf(30n, key), id: scene.ids.next() }));
    return { ledger, hold: heldOf(value) };
  };
  return { ...scene, visit };
}

test('a visit books its entry when its request has ended, once', async () => {
  const { entries, ended, store, time, visit } = createVisits();
  const { ledger, hold } = await visit();
  await ended(ledger.settle(hold, settlementOf(25n)));
  await time.advance(500);
  expect(entries.entries()).toEqual([]);
  await ended(ledger.close());
  expect(entries.entries()).toMatchObject([{ id: hold.id, kind: 'settled', cost: 25n }]);
  expect(await store.part.accounts(false, 10)).toEqual([]);
});

test('visits that died are charged their sizes when their leases have ended, once, by the visits after them', async () => {
  const { entries, ended, store, time, visit } = createVisits();
  let isAlive = true;
  for (let dying = 0; dying < 3; dying += 1) await visit(() => isAlive);
  isAlive = false;
  await time.advance(60_000);
  const visits = [await visit(), await visit()];
  await time.advance(500);
  expect(entries.entries()).toMatchObject(Array(3).fill({ kind: 'expired', cost: 30n }));
  await ended(Promise.all(visits.map(({ ledger, hold }) => ledger.release(hold).then(ledger.close))));
  expect(await store.part.accounts(false, 10)).toEqual([]);
});

test('a call that is repeated after others were done is no store that has gone back', async () => {
  const { epochs, ended, store, time, visit } = createVisits();
  const { ledger } = await visit();
  store.behaviour = 'loses';
  const asked = ledger.hold(requestOf(40n, key));
  await time.advance(0);
  store.behaviour = 'up';
  await visit();
  expect((await ended(asked)).value).toMatchObject({ ok: true });
  expect(epochs.part.current()).toMatchObject({ epoch: 1 });
});
