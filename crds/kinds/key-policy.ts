// One element of `spec.keyPolicies` of an instance: what VirtualKeys of some namespaces must have, and what they may
// spend.
import * as z from 'zod';
import { listBy, setOf, withRule } from '../validation/rule.ts';
import { LabelSelector } from './label-selector.ts';
import {
  BUDGET_WINDOWS,
  budgetTimeZone,
  budgetWindowText,
  DnsLabel,
  Duration,
  LocalRef,
  limits,
  ModelNames,
  Money,
} from './shared-fields.ts';

/**
 * A budget and rate limits, with the fields of a VirtualKey. `whose`: whose requests they limit. `window`: the
 * description of `budgetWindow`.
 */
const budgetAndLimits = (whose: string, window: string) =>
  withRule(
    z.object({
      maxBudget: Money.optional().describe(
        `Maximum dollars that ${whose} may spend in one window, in quotes; together with \`budgetDuration\`. \`"0"\` means none. Default: no limit.`,
      ),
      budgetDuration: Duration.optional().describe(
        'Length of the budget window, e.g. `30d`; together with `maxBudget`. `mo` is 30 days, or a calendar month with `budgetWindow: Calendar`.',
      ),
      budgetWindow: z.enum(BUDGET_WINDOWS).optional().describe(`${window} Default: \`Rolling\`.`),
      budgetTimeZone,
      ...limits,
    }),
    {
      id: 'HalfBudget',
      cel: 'has(self.maxBudget) == has(self.budgetDuration)',
      isMet: ({ maxBudget, budgetDuration }) => (maxBudget === undefined) === (budgetDuration === undefined),
      message: 'needs budgetDuration, and budgetDuration needs maxBudget; write both, or none',
      at: 'maxBudget',
    },
  );

const REQUIRED_REFERENCES = ['teamRef', 'userRef'] as const;
export type RequiredReference = (typeof REQUIRED_REFERENCES)[number];

export const KeyPolicySpec = z.object({
  name: DnsLabel.describe('Names the policy in messages and in `status.policy` of a VirtualKey.'),
  namespaceSelector: LabelSelector.optional().describe(
    'Selects namespaces by their labels; the namespace of the instance is no exception. Absent or empty: all namespaces.',
  ),
  require: withRule(setOf(z.enum(REQUIRED_REFERENCES), REQUIRED_REFERENCES.length), {
    id: 'NothingRequired',
    cel: 'size(self) > 0',
    isMet: (self) => self.length > 0,
    message: 'must have at least one element; add teamRef or userRef, or remove require',
  })
    .optional()
    .describe(
      'What a new VirtualKey must name: a Team (`teamRef`; a User that is in a Team is enough), a User (`userRef`), or both. Older VirtualKeys continue to work, with the condition `PolicyMet` False.',
    ),
  models: ModelNames.optional().describe(
    'The models that the VirtualKeys may use, as exact `modelName`s of the instance: a VirtualKey may use a model that both it and the policy allow. Absent or empty means all.',
  ),
  teamRef: LocalRef.optional().describe(
    'A Team in the namespace of the instance. It is charged for each request of these VirtualKeys, in addition to their own User and Teams, so that several namespaces share one budget.',
  ),
  perNamespace: budgetAndLimits(
    'all VirtualKeys of a namespace together',
    budgetWindowText('namespace', 'the first VirtualKey of the namespace on this instance'),
  )
    .optional()
    .describe(
      'Budget and limits of each namespace. The budget counts all that VirtualKeys of the namespace have spent on this instance, also VirtualKeys that are deleted now, and also while no policy applied.',
    ),
  perKey: budgetAndLimits('each VirtualKey', budgetWindowText('VirtualKey'))
    .optional()
    .describe(
      'A further budget for each VirtualKey, in addition to its own, and limits. If the VirtualKey has such a limit too, the smaller one applies. A new VirtualKey begins with a full budget, so only `perNamespace` and `teamRef` limit what a namespace spends.',
    ),
});
export type KeyPolicySpec = z.output<typeof KeyPolicySpec>;

export const KeyPolicies = listBy('name', KeyPolicySpec, 64);
