import { describe, expect, test } from 'vitest';
import { idAt } from '../ports/entry.fixture.ts';
import { EMPTY_CALL } from '../ports/store.ts';
import { createForgetfulScene } from './rebuild.fixture.ts';
import { settlementOf } from './scene.promises.ts';

describe('an audit', () => {
  test('finds nothing where every counter shows its entries and what is not booked yet', async () => {
    const { ended, scene, start, take } = createForgetfulScene();
    const one = await start();
    const [booked, unbooked] = [await take(one, 30n), await take(one, 20n)];
    await one.settle(booked, settlementOf(25n));
    await scene.time.advance(500);
    await one.settle(unbooked, settlementOf(10n));
    await scene.time.advance(10);
    await ended(one.maintain());
    expect(scene.counted.get('gateway_operator_ledger_audit_differences_total')).toBeUndefined();
  });

  test('repairs a counter that differs from its entries, and reports it', async () => {
    const { ended, scene, spent, start, take } = createForgetfulScene();
    const one = await start();
    const settled = await take(one, 30n);
    await one.settle(settled, settlementOf(25n));
    await scene.time.advance(500);
    const [window] = settled.charges;
    if (window === undefined) throw new Error('no window is charged');
    const deadline = scene.time.clock.now() + 1000;
    await scene.store.part.call({ ...EMPTY_CALL, epoch: 1, adjusts: [{ ...window, by: -20n, deadline }] });
    expect(await spent(one)).toMatchObject({ value: [{ spent: 5n }] });
    await ended(one.maintain());
    expect(await spent(one)).toMatchObject({ value: [{ spent: 25n }] });
    expect(scene.counted.get('gateway_operator_ledger_audit_differences_total')).toBe(1);
    expect(scene.log.lines.filter(({ message }) => message.includes('was repaired'))).toHaveLength(1);
  });

  test('repairs the counter of a key that now spends in another instance without a report', async () => {
    const { ended, scene, spent, start, take } = createForgetfulScene();
    const one = await start();
    const { id, charges } = await take(one, 30n);
    await one.settle({ id, amount: 30n, charges }, settlementOf(25n));
    await scene.time.advance(500);
    const [before] = scene.books.part.entries();
    const [window] = charges;
    if (before === undefined || window === undefined) throw new Error('nothing was booked');
    scene.books.part.moved(window.scopeId, 'instance-2');
    await scene.books.part.book('instance-2', [{ ...before, id: idAt(scene.time.clock.now()), cost: 40n }]);
    await ended(one.maintain());
    expect(await spent(one)).toMatchObject({ value: [{ spent: 65n }] });
    expect(scene.counted.get('gateway_operator_ledger_audit_differences_total')).toBeUndefined();
    expect(scene.log.lines.filter(({ message }) => message.includes('was repaired'))).toEqual([]);
  });
});
