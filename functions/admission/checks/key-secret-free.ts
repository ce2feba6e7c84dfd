// Would the key's Secret be somebody else's? It is never written then, so better say so now.
import type { KubeObject } from '#core/ports/cluster.ts';
import { secretConflict } from '#core/rules/key-conflicts.ts';
import { OWNED, OWNED_LABEL } from '#crds/group.ts';
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';

export const keySecretFree: Check = async ({ object }, lookup) => {
  const { name, namespace } = object.metadata;
  const template = toView(KeyView, object.spec).secretTemplate?.name;
  if (name === undefined) return [];
  const wanted = lookup.keySecretName(name, template);
  // Read only for who may read it: to everybody else it stays untold, and reconcile says SecretConflict.
  const secret = await lookup.secret(namespace, wanted);
  if (secret === undefined || isOf(secret, name)) return [];
  return [secretConflict(name, template, wanted)];
};

/** Ours by its label, and no other key's. One without an owner was retained: its value decides, at reconcile. */
function isOf({ metadata }: KubeObject, key: string): boolean {
  if (metadata.labels?.[OWNED_LABEL] !== OWNED) return false;
  const owners = (metadata.ownerReferences ?? []).filter(({ kind }) => kind === 'VirtualKey');
  return owners.length === 0 || owners.some(({ name }) => name === key);
}
