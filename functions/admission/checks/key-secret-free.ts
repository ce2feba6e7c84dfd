// Would the key's Secret be somebody else's? It is never written then, so better say so now.
import type { KubeObject } from '#core/ports/cluster.ts';
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
  const message =
    template === undefined
      ? `a Secret ${JSON.stringify(wanted)} that is not this key's is there already: delete it, or name another in spec.secretTemplate.name`
      : "a Secret of this name that is not this key's is there already: choose another name, or delete that Secret";
  const path = template === undefined ? 'metadata.name' : 'spec.secretTemplate.name';
  return [{ rule: 'SecretConflict', path, value: template ?? name, message, effect: 'refuse' }];
};

/** Ours by its label, and no other key's. One without an owner was retained: its value decides, at reconcile. */
function isOf({ metadata }: KubeObject, key: string): boolean {
  if (metadata.labels?.[OWNED_LABEL] !== OWNED) return false;
  const owners = (metadata.ownerReferences ?? []).filter(({ kind }) => kind === 'VirtualKey');
  return owners.length === 0 || owners.some(({ name }) => name === key);
}
