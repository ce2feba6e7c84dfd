// Checks of a User with the key that it would get.

import { keyConflict } from '#core/rules/conflicts.ts';
import type { Finding } from '#core/rules/finding.ts';
import { isSameInstance } from '#core/rules/instance.ts';
import type { UserSpec } from '#crds/kinds/user.ts';
import type { Check } from '../check.ts';
import type { MemberFacts } from '../facts.ts';

type UserCheck = Check<UserSpec, MemberFacts>;

export const keyNameFree: UserCheck = ({ facts: { foreign } }) => (foreign === undefined ? [] : [keyConflict(foreign)]);

/** An edit of the alias or the instance replaces the user's key (DESIGN 10, Keys). */
export const keyReplaced: UserCheck = ({ spec, old }) => {
  const before = spec.autoCreateKey ? old() : undefined;
  if (!before?.autoCreateKey) return [];
  const message = "the user's key is replaced by a new one; give clients the new value from its Secret";
  const replaced = (path: string, value?: string): Finding[] => [
    { rule: 'KeyReplaced', path, value, message, effect: 'warn' },
  ];
  if (spec.keyAlias !== before.keyAlias) return replaced('spec.keyAlias', spec.keyAlias);
  const isSame = isSameInstance(spec.connectionRef.instanceRef, before.connectionRef.instanceRef);
  return isSame ? [] : replaced('spec.connectionRef');
};
