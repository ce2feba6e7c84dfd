// The kind User: a person with a budget, and a key if wanted.
import * as z from 'zod';
import type { AUTH_API_VERSION } from '../names/group.ts';
import type { KubeObject } from '../names/object-meta.ts';
import { listBy, type Rule, text, withRule } from '../validation/rule.ts';
import { Duration, FreeText, LocalRef, scopeSpec, scopeStatus } from './shared-fields.ts';

const EMAIL = /^[^\p{Z}\p{C}@]+@[^\p{Z}\p{C}@]+$/u;

type RequiredField = 'keyAlias' | 'maxBudget' | 'budgetDuration';
type Needs = { readonly autoCreateKey: boolean } & { readonly [field in RequiredField]?: string | undefined };

const keyNeeds = (field: RequiredField): Rule<Needs> => ({
  id: 'AutoCreateKeyNeedsField',
  cel: `!self.autoCreateKey || has(self.${field})`,
  isMet: (self) => !self.autoCreateKey || self[field] !== undefined,
  message: `autoCreateKey is true; add ${field}, or set autoCreateKey to false`,
  at: field,
});

const Fields = z.object({
  userEmail: text(254)
    .regex(EMAIL, 'must be an e-mail address, e.g. "name@example.com"')
    .describe(
      'E-mail address of the user; unique in the instance. After a change, spend and window continue. While another User has the new address, the User is not `Ready` (`AliasTaken`).',
    ),
  userAlias: FreeText.optional().describe(
    'What the user is called. Default: the admission webhook makes it from `userEmail`.',
  ),
  ...scopeSpec('user'),
  autoCreateKey: z
    .boolean()
    .default(false)
    .describe(
      'While true a VirtualKey of the same name exists that follows this user; then `keyAlias`, `maxBudget` and `budgetDuration` are required. When it becomes false, that key is deleted.',
    ),
  keyAlias: FreeText.optional().describe('`keyAlias` of that VirtualKey. A change replaces the key.'),
  duration: Duration.optional().describe('How long the key of `autoCreateKey` lives. Default: for ever.'),
  teamRefs: listBy('name', LocalRef, 64)
    .default([])
    .describe(
      'The Teams of the user. It is enough if the User or the Team names the other. Only the first eight Teams by name count: budgets, limits and blocks of the others do not apply.',
    ),
});

export const UserSpec = withRule(Fields, keyNeeds('keyAlias'), keyNeeds('maxBudget'), keyNeeds('budgetDuration'));
export type UserSpec = z.output<typeof UserSpec>;

export const UserStatus = z.object({
  ...scopeStatus('user'),
  keyRef: LocalRef.optional().describe('The VirtualKey that `autoCreateKey` made.'),
  keySecretRef: z.string().max(253).optional().describe('Name of the Secret that holds its key.'),
});
export type UserStatus = z.output<typeof UserStatus>;

export type User = KubeObject<typeof AUTH_API_VERSION, 'User', UserSpec, UserStatus>;

export const schemas = { spec: UserSpec, status: UserStatus };
