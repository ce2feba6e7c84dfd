// Checks of a VirtualKey with its alias, its user, its team and its Secret.
import { secretConflict } from '#core/rules/conflicts.ts';
import type { VirtualKeySpec } from '#crds/virtual-key.ts';
import type { Check } from '../check.ts';
import type { KeyFacts } from '../facts.ts';
import { aliasFree, refers } from './member.ts';

type KeyCheck = Check<VirtualKeySpec, KeyFacts>;

export const keyAliasFree: KeyCheck = (key) =>
  aliasFree(key, 'spec.keyAlias', key.spec.keyAlias, key.facts.aliasHolder);

export const userExists: KeyCheck = (key) => {
  const { userRef } = key.spec;
  if (userRef === undefined) return [];
  return refers(key, { kind: 'User', path: 'spec.userRef.name', name: userRef.name }, key.facts.user);
};

export const teamExists: KeyCheck = (key) => {
  const { teamRef } = key.spec;
  if (teamRef === undefined) return [];
  return refers(key, { kind: 'Team', path: 'spec.teamRef.name', name: teamRef.name }, key.facts.team);
};

export const keySecretFree: KeyCheck = ({ metadata: { name = '' }, spec, facts: { foreignSecret } }) =>
  foreignSecret === undefined ? [] : [secretConflict(name, spec.secretTemplate?.name, foreignSecret)];
