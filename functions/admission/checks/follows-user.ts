// Does somebody edit a key that follows its User? It is put back at once, so the edit belongs on the User.
import { isMap } from '#crds/shapes.ts';
import type { Check } from '../check.ts';
import { isSameSpec } from '../subject.ts';

export const followsUser: Check = ({ object, old }) => {
  if (old === undefined) return [];
  const { metadata } = object.json;
  const owners: readonly unknown[] =
    isMap(metadata) && Array.isArray(metadata.ownerReferences) ? metadata.ownerReferences : [];
  const user = owners.find((owner) => isMap(owner) && owner.kind === 'User' && owner.controller === true);
  if (!isMap(user) || isSameSpec(old, object)) return [];
  const message = `this key follows User ${JSON.stringify(user.name)} and is put back as the User says; edit the User`;
  return [{ rule: 'FollowsUser', path: 'spec', value: undefined, message, effect: 'warn' }];
};
