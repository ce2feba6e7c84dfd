// Checks of a team.
import { beforeEach, describe, expect, test } from 'vitest';
import { createWorld, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

describe('a team', () => {
  test('whose alias another team of the instance has is refused', async () => {
    expect((await review('Team', {}, { name: 'research-2' })).refused).toEqual([
      'spec.teamAlias: Duplicate value: "research": is already used by Team "research" on instance "platform/main"; choose another, or delete the other one first',
    ]);
  });

  test('of an unknown instance, with a model it does not serve, is refused', async () => {
    expect((await review('Team', { models: ['x'] })).refused).toHaveLength(1);
    expect(
      (await review('Team', { connectionRef: { instanceRef: { name: 'x', namespace: 'y' } } })).refused,
    ).toHaveLength(1);
  });
});
