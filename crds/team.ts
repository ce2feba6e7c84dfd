// The kind Team: users who share a budget.
import * as z from 'zod';
import {
  ConnectionRef,
  Duration,
  FreeText,
  LocalRef,
  limits,
  ModelNames,
  Money,
  observed,
  Spend,
  Timestamp,
} from './fragments.ts';
import type { AUTH_API_VERSION } from './group.ts';
import type { KubeObject } from './object-meta.ts';
import { listBy } from './rule.ts';

export const TeamSpec = z.object({
  connectionRef: ConnectionRef.describe('The instance that the team belongs to.'),
  teamAlias: FreeText.describe('What the team is called.'),
  models: ModelNames.describe(
    'The models that the team may use, as exact `modelName`s of the instance. Empty means all.',
  ),
  maxBudget: Money.optional().describe(
    'The most that all keys of the team together may spend in one window, in dollars. Default: no limit.',
  ),
  budgetDuration: Duration.optional().describe(
    'Length of the budget window, e.g. `30d`. Default: `maxBudget` is never whole again.',
  ),
  blocked: z.boolean().default(false).describe('While true no key of the team works.'),
  ...limits,
  members: listBy('name', LocalRef, 1024)
    .default([])
    .describe('The Users of the team; one is enough that either side names the other.'),
});
export type TeamSpec = z.output<typeof TeamSpec>;

export const TeamStatus = z.object({
  ...observed,
  currentSpend: Spend.optional().describe('Dollars spent in the current window by all keys of the team.'),
  budgetResetDate: Timestamp.optional().describe('When the current budget window ends, RFC 3339.'),
});
export type TeamStatus = z.output<typeof TeamStatus>;

export type Team = KubeObject<typeof AUTH_API_VERSION, 'Team', TeamSpec, TeamStatus>;
