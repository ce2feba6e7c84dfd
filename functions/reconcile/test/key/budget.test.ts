// A budget gets new windows after an edit that changes how it is counted, and keeps its windows after all other edits.
import { expect, test } from 'vitest';
import type { Budget } from '#core/ports/policy.ts';
import { INHERITED_NAMES } from '../../../../test/support/inherited-names.ts';
import { renewedBudget, spentBudgets } from '../../key/budget.ts';

const month: Budget = { limit: '5', duration: '30d', alignment: 'Rolling' };
const edit = (generation: number) => ({ isNew: false, generation });

test.each([
  ['a new scope', month, undefined, { isNew: true, generation: 7 }, undefined],
  ['another limit', { ...month, limit: '6' }, { ...month, sinceGeneration: 3 }, edit(9), 3],
  ['never counted in other windows', month, month, edit(9), undefined],
  ['another duration', month, { ...month, duration: '31d' }, edit(3), 3],
  ['another alignment', month, { ...month, alignment: 'Calendar', sinceGeneration: 3 } as const, edit(5), 5],
  ['put back', month, undefined, edit(4), 4],
  [
    'another duration in an object that was created again',
    month,
    { ...month, duration: '31d', sinceGeneration: 3 },
    edit(1),
    4,
  ],
])('%s', (_, budget, before, how, sinceGeneration) => {
  expect(renewedBudget(budget, before, how)).toEqual(
    sinceGeneration === undefined ? budget : { ...budget, sinceGeneration },
  );
});

test.each(INHERITED_NAMES)(
  'a budget of the model %s that is no longer in the spec is not reported as spent',
  (name) => {
    const further = { scopeId: 'model', model: name, limit: '5', duration: '30d' };
    const policy = { budget: month, furtherBudgets: [further] };
    const claim = { scopeId: 'key', anchor: 0, policy };
    expect(
      spentBudgets({ spec: { models: [], modelMaxBudget: {} } }, { claim, instance: { sums: new Map() } }, 0),
    ).toEqual([]);
  },
);
