// Checks of a User with the VirtualKey that `autoCreateKey` creates for it.

import { keyConflict } from '#core/rules/conflicts.ts';
import type { Finding } from '#core/rules/finding.ts';
import { isSameInstance } from '#core/rules/instance.ts';
import type { UserSpec } from '#crds/kinds/user.ts';
import type { Check } from '../check.ts';
import type { ScopeObjectFacts } from '../facts/scope-object.ts';

type UserCheck = Check<UserSpec, ScopeObjectFacts>;

export const keyNameFree: UserCheck = ({ facts: { occupiedName } }) =>
  occupiedName === undefined ? [] : [keyConflict(occupiedName)];

/** Warns that an edit of the alias or the instance replaces the User's VirtualKey (DESIGN 10, Keys). */
export const keyReplaced: UserCheck = ({ spec, old }) => {
  const stored = spec.autoCreateKey ? old() : undefined;
  if (!stored?.autoCreateKey) return [];
  const message = "the User's VirtualKey is replaced by a new one; give clients the new value from its Secret";
  const replaced = (path: string, value?: string): Finding[] => [
    { rule: 'KeyReplaced', path, value, message, effect: 'warn' },
  ];
  if (spec.keyAlias !== stored.keyAlias) return replaced('spec.keyAlias', spec.keyAlias);
  const isSame = isSameInstance(spec.connectionRef.instanceRef, stored.connectionRef.instanceRef);
  return isSame ? [] : replaced('spec.connectionRef');
};
