// Which namespaces may refer to an instance: all, its own, or those that a label selector selects.
import * as z from 'zod';
import { withRule } from '../validation/rule.ts';
import { LabelSelector } from './label-selector.ts';
import { choice } from './shared-fields.ts';

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
