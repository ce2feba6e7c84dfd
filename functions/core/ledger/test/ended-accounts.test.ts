import { expect, test } from 'vitest';
import { idAt } from '../../ports/test/ledger-row.fixture.ts';
import { createScenario, heldOf, requestOf, scopeOf, settlementOf } from './scenario.promises.ts';

test('a counter is audited although an account has just ended in it', async () => {
  const { ledgerRows, ended, start, store, time } = createScenario();
  const first = await start();
  const reservation = heldOf((await ended(first.reserve(requestOf(30n, scopeOf('key-1', 1000n))))).value);
  await first.settle(reservation, settlementOf(25n));
  await time.advance(500);
  await ended(first.close());

  const [entry] = ledgerRows.all();
  if (entry === undefined) throw new Error('nothing was booked');
  ledgerRows.insert([{ ...entry, id: idAt(time.clock.now()), cost: 40n }]);
  const second = await start();
  await ended(second.maintain());
  expect(await store.part.read(reservation.scopeWindows)).toMatchObject([{ spent: 65n }]);
});
