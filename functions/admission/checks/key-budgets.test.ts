// Which budgets of a key are warned about?
import { beforeEach, describe, expect, test } from 'vitest';
import { createWorld, type World } from '../../../test/admission/fixtures.ts';
import { createReviews } from '../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { told } = createReviews(() => world);

test('a key whose Calendar windows begin at an odd hour or day is let in with a warning that says from where they are counted', async () => {
  const warned = async (change: object) => (await told('VirtualKey', change)).warnings;
  expect(await warned({ budgetWindow: 'Calendar', budgetDuration: '1mo' })).toEqual([]);
  expect(await warned({ budgetWindow: 'Rolling', budgetDuration: '36h' })).toEqual([]);
  expect(await warned({ budgetWindow: 'Calendar', budgetDuration: '7d' })).toEqual([
    'spec.budgetDuration: "7d": budgetWindow Calendar counts windows of this length in a row from 1970-01-01T00:00Z on, whatever day, week or month that meets; write "1w" for windows that begin each Monday',
  ]);
  const modelMaxBudget = { 'gpt-4o': { maxBudget: '1', budgetDuration: '2w' } };
  expect(await warned({ budgetWindow: 'Calendar', budgetDuration: '1d', modelMaxBudget })).toEqual([
    'spec.modelMaxBudget["gpt-4o"].budgetDuration: "2w": budgetWindow Calendar counts windows of this length in blocks of 2 weeks from Monday 1970-01-05 on; write "1w" for windows that begin each Monday',
  ]);
});

describe('a key', () => {
  const key = (change: object, metadata = {}, more = {}) => told('VirtualKey', change, metadata, more);

  test('with a budget for a model that is not served, that it may not use, or that is nothing, is warned about', async () => {
    const modelMaxBudget = {
      'gpt-4o': { maxBudget: '0.0', budgetDuration: '1d' },
      claude: { maxBudget: '1', budgetDuration: '1d' },
      gpt: { maxBudget: '1', budgetDuration: '1d' },
    };
    expect(await key({ models: [], modelMaxBudget })).toEqual({
      refused: [],
      warnings: [
        expect.stringContaining('spec.modelMaxBudget["gpt"]: instance "platform/main" serves no model'),
        'spec.modelMaxBudget["gpt-4o"].maxBudget: "0.0": a budget of nothing is used up from the start: this key never uses the model; raise it to let it',
      ],
    });
    const { claude } = modelMaxBudget;
    expect((await key({ models: ['gpt-4o'], modelMaxBudget: { claude } })).warnings).toEqual([
      'spec.modelMaxBudget["claude"]: the key may not use this model, so nothing is ever spent from this; add it to spec.models, or remove it here',
    ]);
  });

  test('with a budget of nothing is warned about', async () => {
    expect((await key({ maxBudget: '0.00' })).warnings).toEqual([
      'spec.maxBudget: "0.00": a budget of nothing is used up from the start: this key never works, for free models neither; raise it to let it work',
    ]);
  });
});
