// Checks of a User with its address, its teams and the key that it would get.
import type { Finding } from '#core/finding.ts';
import { keyConflict } from '#core/rules/conflicts.ts';
import { isSameInstance } from '#core/rules/instance.ts';
import type { UserSpec } from '#crds/user.ts';
import type { Check } from '../check.ts';
import type { UserFacts } from '../facts.ts';
import { aliasFree, refers } from './member.ts';

type UserCheck = Check<UserSpec, UserFacts>;

export const addressFree: UserCheck = (user) =>
  aliasFree(user, 'spec.userEmail', user.spec.userEmail, user.facts.addressHolder);

export const keyAliasFree: UserCheck = (user) =>
  aliasFree(user, 'spec.keyAlias', user.spec.keyAlias ?? '', user.facts.aliasHolder);

export const teamsExist: UserCheck = (user) =>
  user.spec.teamRefs.flatMap(({ name }, index) =>
    refers(user, { kind: 'Team', path: `spec.teamRefs[${index}].name`, name }, user.facts.teams[index]),
  );

export const keyNameFree: UserCheck = ({ facts: { foreignKey } }) =>
  foreignKey === undefined ? [] : [keyConflict(foreignKey)];

/** An edit of the alias or the instance replaces the user's key (DESIGN 10, Keys). */
export const keyReplaced: UserCheck = ({ spec, old }) => {
  if (!spec.autoCreateKey || !old?.autoCreateKey) return [];
  const message = "the user's key is replaced by a new one; give clients the new value from its Secret";
  const replaced = (path: string, value?: string): Finding[] => [
    { rule: 'KeyReplaced', path, value, message, effect: 'warn' },
  ];
  if (spec.keyAlias !== old.keyAlias) return replaced('spec.keyAlias', spec.keyAlias);
  const isSame = isSameInstance(spec.connectionRef.instanceRef, old.connectionRef.instanceRef);
  return isSame ? [] : replaced('spec.connectionRef');
};
