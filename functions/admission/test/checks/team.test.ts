// Checks of a team.
import { beforeEach, describe, expect, test } from 'vitest';
import { teams } from '#crds/names/resources.ts';
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

  test('is accepted if the other team waits for the alias too: what has it decides', async () => {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'AliasTaken', message: 'x' }];
    const written = await world.cluster.patch(teams, 'team-a', 'research', { status: { conditions } }, 'status');
    expect(written.ok).toBe(true);
    expect((await review('Team', {}, { name: 'research-2' })).refused).toEqual([]);
  });

  test('of an unknown instance, with a model it does not serve, is refused', async () => {
    expect((await review('Team', { models: ['x'] })).refused).toHaveLength(1);
    expect(
      (await review('Team', { connectionRef: { instanceRef: { name: 'x', namespace: 'y' } } })).refused,
    ).toHaveLength(1);
  });
});

describe.each(['Team', 'User'] as const)('the window of a %s', (kind) => {
  const budget = { maxBudget: '10', budgetDuration: '1mo' };

  test('of an unknown time zone is refused', async () => {
    const budgetTimeZone = 'Europe/Belrin';
    expect((await review(kind, { ...budget, budgetWindow: 'Calendar', budgetTimeZone })).refused).toEqual([
      'spec.budgetTimeZone: Not found: "Europe/Belrin": must be a time zone of the IANA database; write its name, e.g. "Europe/Berlin"',
    ]);
  });

  test('that has no effect gets a warning', async () => {
    const warningsOf = async (spec: object) => (await review(kind, spec)).warnings;
    expect(await warningsOf({ ...budget, budgetWindow: 'Calendar', budgetTimeZone: 'Europe/Berlin' })).toEqual([]);
    expect(await warningsOf({ ...budget, budgetTimeZone: 'Europe/Berlin' })).toEqual([
      'spec.budgetTimeZone: "Europe/Berlin": has no effect on Rolling windows; set budgetWindow: Calendar, or remove it',
    ]);
    expect(await warningsOf({ maxBudget: undefined, budgetDuration: undefined, budgetWindow: 'Calendar' })).toEqual([
      'spec.budgetWindow: "Calendar": has no effect without maxBudget and budgetDuration; add them, or remove budgetWindow',
    ]);
    expect(await warningsOf({ maxBudget: '10', budgetDuration: undefined, budgetWindow: 'Calendar' })).toEqual([
      'spec.budgetWindow: "Calendar": has no effect without budgetDuration; add it, or remove budgetWindow',
    ]);
  });
});
