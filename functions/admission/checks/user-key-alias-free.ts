// Has a key that is not this user's own the alias that the user's key would get?
import { userKeyName } from '#core/names.ts';
import { virtualKeys } from '#crds/resources.ts';
import type { Check } from '../check.ts';
import { toView, UserView } from '../spec-views.ts';
import { findAliasTaken } from './alias-taken.ts';

export const userKeyAliasFree: Check = ({ object }, lookup) => {
  const { autoCreateKey, keyAlias: alias } = toView(UserView, object.spec);
  if (autoCreateKey !== true) return [];
  const { name } = object.metadata;
  const owner = name === undefined ? undefined : userKeyName(name);
  return findAliasTaken({ object, resource: virtualKeys, field: 'spec.keyAlias', alias, owner }, lookup);
};
