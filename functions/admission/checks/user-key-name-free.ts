// Is there a VirtualKey of the user's name that the user does not own? It is never touched, so the user gets no key.
import { userKeyName } from '#core/names.ts';
import { keyConflict } from '#core/rules/key-conflicts.ts';
import type { Check } from '../check.ts';
import { toView, UserView } from '../spec-views.ts';

export const userKeyNameFree: Check = async ({ object }, lookup) => {
  const { name, namespace, uid } = object.metadata;
  if (name === undefined || toView(UserView, object.spec).autoCreateKey !== true) return [];
  const key = await lookup.virtualKey(namespace, userKeyName(name));
  if (key === undefined || key.metadata.deletionTimestamp !== undefined) return [];
  const owned = uid !== undefined && (key.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid);
  if (owned) return [];
  return [keyConflict(key.metadata.name)];
};
