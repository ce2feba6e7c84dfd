// A selector of namespaces by their labels, in the form of Kubernetes.
import * as z from 'zod';
import { listOf, withRule } from '../validation/rule.ts';
import { Labels } from './shared-fields.ts';

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

export const LabelSelector = z.object({
  matchLabels: Labels.optional().describe('Labels that the namespace must have.'),
  matchExpressions: listOf(LabelRequirement, 64).optional().describe('Further requirements on its labels.'),
});
export type LabelSelector = z.output<typeof LabelSelector>;
