import { describe, expect, test } from 'vitest';
import { createForgetfulScene, freezable } from './rebuild.fixture.ts';
import { settlementOf } from './scene.promises.ts';

describe('a charge that a dead process counted', () => {
  test('is booked by another process after two seconds without a call, with its tokens and its model', async () => {
    const { scene, spent, start, take } = createForgetfulScene();
    const dead = freezable();
    const [one, two] = [await start(), await start(dead)];
    const settled = await take(two, 30n);
    await two.settle(settled, settlementOf(25n));
    await scene.time.advance(10);
    dead.freeze();
    await scene.time.advance(1000);
    expect(scene.books.part.entries()).toEqual([]);
    await scene.time.advance(4000);
    expect(scene.books.part.entries()).toMatchObject([
      { id: settled.id, kind: 'settled', cost: 25n, charges: settled.charges, tokens: { input: 1, output: 2 } },
    ]);
    expect(await spent(one)).toMatchObject({ value: [{ spent: 25n }] });
  });

  test('and a hold that it left in flight is charged when its lease ends, also without any request', async () => {
    const { scene, start, take } = createForgetfulScene();
    const dead = freezable();
    const [, two] = [await start(), await start(dead)];
    const { id } = await take(two, 30n);
    dead.freeze();
    await scene.time.advance(70_000);
    expect(scene.books.part.entries()).toMatchObject([{ id, kind: 'expired', cost: 30n }]);
  });

  test('is booked by a sweep immediately, a live process’s charge too, and never twice', async () => {
    const { ended, scene, spent, start, take } = createForgetfulScene();
    const [one, two] = [await start(), await start()];
    const settled = await take(two, 30n);
    await two.settle(settled, settlementOf(25n));
    await scene.time.advance(10);
    await ended(one.maintain());
    expect(scene.books.part.entries()).toHaveLength(1);
    await scene.time.advance(1000);
    expect(scene.books.part.entries()).toHaveLength(1);
    expect(await spent(one)).toMatchObject({ value: [{ spent: 25n }] });
  });
});
