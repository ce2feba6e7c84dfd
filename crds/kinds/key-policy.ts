// One element of `spec.keyPolicies` of an instance: what the keys of some namespaces must have and may spend.
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

/** A budget and rate limits, with the fields of a VirtualKey. `whose`: whose requests they limit. */
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
    'Selects namespaces by their labels, that of the instance included. Absent or empty: all namespaces.',
  ),
  require: withRule(setOf(z.enum(REQUIRED_REFERENCES), REQUIRED_REFERENCES.length), {
    id: 'NothingRequired',
    cel: 'size(self) > 0',
    isMet: (self) => self.length > 0,
    message: 'must have at least one entry; add teamRef or userRef, or remove require',
  })
    .optional()
    .describe(
      'What a new VirtualKey must have: `teamRef` (its own, or a User that is in a Team), `userRef`. Older VirtualKeys continue to work, with the condition `PolicyMet` False.',
    ),
  models: ModelNames.optional().describe(
    'The models that the VirtualKeys may use, as exact `modelName`s of the instance: a VirtualKey may use a model that both it and the policy allow. Absent or empty means all.',
  ),
  teamRef: LocalRef.optional().describe(
    'A Team in the namespace of the instance that is charged for each request of these VirtualKeys, beside their own User and Teams: a budget that several namespaces share.',
  ),
  perNamespace: budgetAndLimits(
    'all VirtualKeys of a namespace together',
    budgetWindowText('namespace', 'the first VirtualKey of the namespace on this instance'),
  )
    .optional()
    .describe(
      'Budget and limits of each namespace. The budget counts what the VirtualKeys of the namespace have spent on this instance, deleted VirtualKeys and time without a policy included.',
    ),
  perKey: budgetAndLimits('each VirtualKey', budgetWindowText('VirtualKey'))
    .optional()
    .describe(
      'A further budget of each VirtualKey, in addition to its own, and limits: of two limits the smaller applies. A new VirtualKey begins with a full budget, so only `perNamespace` and `teamRef` limit what a namespace spends.',
    ),
});
export type KeyPolicySpec = z.output<typeof KeyPolicySpec>;

export const KeyPolicies = listBy('name', KeyPolicySpec, 64);
