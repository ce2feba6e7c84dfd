// Which namespaces may refer to an instance: all, its own, or those that a label selector selects.
import * as z from 'zod';
import { listOf, withRule } from '../validation/rule.ts';
import { choice, Labels } from './shared-fields.ts';

const LabelRequirement = withRule(
  z.object({
    key: z.string().min(1).max(317).describe('The label.'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How `values` are compared.'),
    values: listOf(z.string().max(63), 64)
      .optional()
      .describe('For `In` and `NotIn` at least one value; for the others none.'),
  }),
  {
    id: 'ValuesOfRequirement',
    cel: "(self.operator == 'In' || self.operator == 'NotIn') == (has(self.values) && size(self.values) > 0)",
    isMet: ({ operator, values = [] }) => (operator === 'In' || operator === 'NotIn') === values.length > 0,
    message: 'must go with the operator; add values to In and NotIn, remove them from Exists and DoesNotExist',
    at: 'values',
  },
);

const LabelSelector = z.object({
  matchLabels: Labels.optional().describe('Labels that the namespace must have.'),
  matchExpressions: listOf(LabelRequirement, 64).optional().describe('Further requirements on its labels.'),
});

export const AllowedNamespaces = withRule(
  z.object({
    from: choice('All', 'Same', 'Selector').describe(
      '`All` namespaces, the `Same` namespace as the instance, or those that `selector` selects. With `All`, whoever may create VirtualKeys in any namespace spends on this instance.',
    ),
    selector: LabelSelector.optional().describe('Selects namespaces by their labels; with `from: Selector` only.'),
  }),
  {
    id: 'SelectorRequired',
    cel: "self.from != 'Selector' || has(self.selector)",
    isMet: ({ from, selector }) => from !== 'Selector' || selector !== undefined,
    message: 'from is Selector; add selector with matchLabels or matchExpressions, or choose All or Same',
    at: 'selector',
  },
);
