// The kind User: a person with a budget, and a key if wanted.
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
import { listBy, type Rule, text, withRules } from './rule.ts';

const EMAIL = /^[^\p{Z}\p{C}@]+@[^\p{Z}\p{C}@]+$/u;

type Needed = 'keyAlias' | 'maxBudget' | 'budgetDuration';
type Needs = { readonly autoCreateKey: boolean } & { readonly [field in Needed]?: string | undefined };

const keyNeeds = (field: Needed): Rule<Needs> => ({
  id: 'AutoCreateKeyNeedsField',
  cel: `!self.autoCreateKey || has(self.${field})`,
  holds: (self) => !self.autoCreateKey || self[field] !== undefined,
  message: `the key of autoCreateKey takes it from the user; add ${field}, or set autoCreateKey to false`,
  at: field,
});

const Fields = z.object({
  connectionRef: ConnectionRef.describe('The instance that the user belongs to.'),
  userEmail: text(254)
    .regex(EMAIL, 'must be an e-mail address, e.g. "name@example.com"')
    .describe('E-mail address of the user.'),
  userAlias: FreeText.optional().describe('What the user is called. Default: admission sets it from `userEmail`.'),
  autoCreateKey: z
    .boolean()
    .default(false)
    .describe(
      'While true a VirtualKey of the same name exists that follows this user; then `keyAlias`, `maxBudget` and `budgetDuration` are required. Switched off, that key is deleted.',
    ),
  keyAlias: FreeText.optional().describe('`keyAlias` of that VirtualKey. A change replaces the key.'),
  models: ModelNames.describe(
    'The models that the user may use, as exact `modelName`s of the instance. Empty means all.',
  ),
  maxBudget: Money.optional().describe(
    'The most that all keys of the user together may spend in one window, in dollars. Default: no limit.',
  ),
  budgetDuration: Duration.optional().describe(
    'Length of the budget window, e.g. `30d`. Default: `maxBudget` is never whole again.',
  ),
  duration: Duration.optional().describe('How long the key of `autoCreateKey` lives. Default: for ever.'),
  blocked: z.boolean().default(false).describe('While true no key of the user works.'),
  ...limits,
  teamRefs: listBy('name', LocalRef, 64)
    .default([])
    .describe('The Teams of the user; one is enough that either side names the other.'),
});

export const UserSpec = withRules(Fields, keyNeeds('keyAlias'), keyNeeds('maxBudget'), keyNeeds('budgetDuration'));
export type UserSpec = z.output<typeof UserSpec>;

export const UserStatus = z.object({
  ...observed,
  currentSpend: Spend.optional().describe('Dollars spent in the current window by all keys of the user.'),
  budgetResetDate: Timestamp.optional().describe('When the current budget window ends, RFC 3339.'),
  keyRef: LocalRef.optional().describe('The VirtualKey that `autoCreateKey` made.'),
  keySecretRef: z.string().max(253).optional().describe('Name of the Secret that holds its key.'),
});
export type UserStatus = z.output<typeof UserStatus>;

export type User = KubeObject<typeof AUTH_API_VERSION, 'User', UserSpec, UserStatus>;
