import { expect, test } from 'vitest';
import { idAt } from '../ports/entry.fixture.ts';
import { createScene, heldOf, requestOf, scopeOf, settlementOf } from './scene.promises.ts';

test('a counter is audited although an account has just ended in it', async () => {
  const scene = createScene();
  const key = scopeOf('key-1', 1000n);
  const start = async () => {
    const ledger = scene.process();
    const started = ledger.start();
    await scene.time.advance(100);
    await started;
    return ledger;
  };
  const first = await start();
  const asked = first.hold(requestOf(30n, key));
  await scene.time.advance(50);
  const hold = heldOf(await asked);
  await first.settle(hold, settlementOf(25n));
  await scene.time.advance(500);
  const closed = first.close();
  await scene.time.advance(100);
  await closed;

  const [entry] = scene.books.part.entries();
  if (entry === undefined) throw new Error('nothing was booked');
  scene.books.part.insert([{ ...entry, id: idAt(scene.time.clock.now()), cost: 40n }]);
  const second = await start();
  const swept = second.maintain();
  await scene.time.advance(2000);
  await swept;
  expect(await scene.store.part.read(hold.charges)).toMatchObject([{ spent: 65n }]);
});
