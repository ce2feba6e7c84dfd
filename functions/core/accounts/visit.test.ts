// Ledgers of one request each, as on Workers.
import { expect, test } from 'vitest';
import { createStoreMemory } from './deps.ts';
import { createScene, heldOf, requestOf, scopeOf, settlementOf } from './scene.promises.ts';

const key = scopeOf('key-1', 1000n);

function createVisits() {
  const scene = createScene();
  const memory = createStoreMemory();
  const ended = async <T>(work: Promise<T>): Promise<T> => {
    await scene.time.advance(500);
    return work;
  };
  const visit = async (lives = () => true) => {
    const ledger = scene.process({ before: lives, after: lives, isDead: () => !lives(), memory });
    await ended(ledger.start());
    const hold = heldOf(await ended(ledger.hold({ ...requestOf(30n, key), id: scene.ids.next() })));
    return { ledger, hold };
  };
  return { scene, ended, visit };
}

test('a visit books its entry when its request has ended, once', async () => {
  const { scene, ended, visit } = createVisits();
  const { ledger, hold } = await visit();
  await ended(ledger.settle(hold, settlementOf(25n)));
  expect(scene.books.part.entries()).toEqual([]);
  await ended(ledger.close());
  expect(scene.books.part.entries()).toMatchObject([{ id: hold.id, kind: 'settled', cost: 25n }]);
  expect(await scene.store.part.accounts(false, 10)).toEqual([]);
});

test('visits that died are charged their sizes when their leases have ended, once, by the visits after them', async () => {
  const { scene, ended, visit } = createVisits();
  let isAlive = true;
  for (let dying = 0; dying < 3; dying += 1) await visit(() => isAlive);
  isAlive = false;
  await scene.time.advance(60_000);
  const visits = [await visit(), await visit()];
  expect(scene.books.part.entries()).toMatchObject(Array(3).fill({ kind: 'expired', cost: 30n }));
  await ended(Promise.all(visits.map(({ ledger, hold }) => ledger.release(hold).then(ledger.close))));
  expect(await scene.store.part.accounts(false, 10)).toEqual([]);
});
