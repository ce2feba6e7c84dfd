// What is said of a team and its members?
import { beforeEach, describe, expect, test } from 'vitest';
import { users } from '#crds/kinds.ts';
import { createWorld, GOOD, objectOf, type World } from '../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { told } = createReviews(() => world);

describe('a team', () => {
  test('whose alias another team of the instance has is refused', async () => {
    expect((await told('Team', {}, { name: 'research-2' })).refused).toEqual([
      'spec.teamAlias: "research": Team "research" has this already on instance "platform/main"; choose another, or delete the other one first',
    ]);
  });

  test('whose members are missing or of another instance is let in with warnings, once each is new', async () => {
    const connectionRef = { instanceRef: { name: 'other', namespace: 'platform' } };
    await world.put(users, spare('bob', { connectionRef, userEmail: 'b@example.com' }, 'team-a', 'User'));
    const members = [{ name: 'alice' }, { name: 'bob' }, { name: 'nobody' }];
    expect(await told('Team', { members })).toEqual({
      refused: [],
      warnings: [
        'spec.members[1].name: "bob": this User belongs to another instance (platform/other); refer to one of the same instance',
        'spec.members[2].name: "nobody": there is no User of this name in namespace "team-a"; create it, or correct the name',
      ],
    });
    const oldObject = objectOf('Team', { ...GOOD.Team, members });
    expect((await told('Team', { members }, {}, { oldObject })).warnings).toEqual([]);
  });

  test('of an unknown instance, with a model it does not serve, is refused', async () => {
    expect((await told('Team', { models: ['x'] })).refused).toHaveLength(1);
    expect(
      (await told('Team', { connectionRef: { instanceRef: { name: 'x', namespace: 'y' } } })).refused,
    ).toHaveLength(1);
  });
});
