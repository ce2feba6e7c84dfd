// Warnings about budgets of a key.
import { beforeEach, describe, expect, test } from 'vitest';
import { createWorld, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

describe('a key', () => {
  const key = (change: object, metadata = {}, more = {}) => review('VirtualKey', change, metadata, more);

  test('with a budget of 0 for a model gets a warning', async () => {
    const modelMaxBudget = {
      'gpt-4o': { maxBudget: '0.0', budgetDuration: '1d' },
      claude: { maxBudget: '1', budgetDuration: '1d' },
    };
    expect(await key({ models: [], modelMaxBudget })).toEqual({
      refused: [],
      warnings: [expect.stringContaining('spec.modelMaxBudget["gpt-4o"].maxBudget: "0.0": a budget of zero is spent')],
    });
  });

  test('with a budget for a model that the instance does not serve gets a warning', async () => {
    const modelMaxBudget = { 'gpt-4': { maxBudget: '1', budgetDuration: '1d' } };
    expect(await key({ models: [], modelMaxBudget })).toEqual({
      refused: [],
      warnings: [
        'spec.modelMaxBudget["gpt-4"]: "gpt-4": is no modelName of the instance, so this budget limits nothing; did you mean "gpt-4o"?',
      ],
    });
  });

  test('with an unknown time zone is refused', async () => {
    expect((await key({ budgetTimeZone: 'Europe/Belrin' })).refused).toEqual([
      'spec.budgetTimeZone: Not found: "Europe/Belrin": must be a time zone of the IANA database; write its name, e.g. "Europe/Berlin"',
    ]);
    expect((await key({ budgetTimeZone: 'Europe/Berlin' })).refused).toEqual([]);
  });

  test('with a further budget of 0 gets a warning', async () => {
    expect((await key({ budgets: [{ maxBudget: '0', budgetDuration: '1h' }] })).warnings).toEqual([
      expect.stringContaining('spec.budgets[0].maxBudget: "0": a budget of zero is spent'),
    ]);
  });

  test('with windows of the same length, or a shorter window with a larger budget, gets a warning', async () => {
    const budgets = [
      { maxBudget: '5', budgetDuration: '60m' },
      { maxBudget: '4', budgetDuration: '1h' },
      { maxBudget: '3', budgetDuration: '1mo' },
      { maxBudget: '10.01', budgetDuration: '1d' },
      { maxBudget: '10', budgetDuration: '1w' },
      { maxBudget: '40', budgetDuration: '3mo' },
    ];
    expect(await key({ budgets })).toEqual({
      refused: [],
      warnings: [
        'spec.budgets[1].budgetDuration: "1h": has the same length as spec.budgets[0].budgetDuration, so only the smaller of the two budgets limits; remove one of them',
        'spec.budgets[2].budgetDuration: "1mo": has the same length as spec.budgetDuration, so only the smaller of the two budgets limits; remove one of them',
        'spec.budgets[3].maxBudget: "10.01": is more than maxBudget, which is for a longer window, so the smaller budget applies; write less than "10", or a longer budgetDuration',
      ],
    });
  });

  test('with a time zone for Rolling windows gets a warning', async () => {
    const warnings = async (change: object) => (await key({ budgetTimeZone: 'Europe/Berlin', ...change })).warnings;
    expect(await warnings({})).toEqual([
      'spec.budgetTimeZone: "Europe/Berlin": has no effect on Rolling windows; set budgetWindow: Calendar, or remove it',
    ]);
    expect(await warnings({ budgetWindow: 'Calendar' })).toEqual([]);
  });

  test('with a budget of 0 gets a warning', async () => {
    expect((await key({ maxBudget: '0.00' })).warnings).toEqual([
      'spec.maxBudget: "0.00": a budget of zero is spent from the start, so every request that is charged to it is refused, even one for a free model; raise it',
    ]);
  });
});
