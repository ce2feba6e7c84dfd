// A selector of namespaces by their labels, in the form of Kubernetes.
import * as z from 'zod';
import { listOf, withRule } from '../validation/rule.ts';
import { Labels } from './shared-fields.ts';

const LabelRequirement = withRule(
  z.object({
    key: z.string().min(1).max(317).describe('The label.'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared with `values`.'),
    values: listOf(z.string().max(63), 64)
      .optional()
      .describe('At least one value for `In` and `NotIn`; none for `Exists` and `DoesNotExist`.'),
  }),
  {
    id: 'ValuesOfRequirement',
    cel: "(self.operator == 'In' || self.operator == 'NotIn') == (has(self.values) && size(self.values) > 0)",
    isMet: ({ operator, values = [] }) => (operator === 'In' || operator === 'NotIn') === values.length > 0,
    message: 'must fit the operator; add values for In and NotIn, remove them for Exists and DoesNotExist',
    at: 'values',
  },
);

export const LabelSelector = z.object({
  matchLabels: Labels.optional().describe('Labels that the namespace must have.'),
  matchExpressions: listOf(LabelRequirement, 64).optional().describe('Further requirements on its labels.'),
});
export type LabelSelector = z.output<typeof LabelSelector>;
