// Is the key-value store's Secret there, with every entry that its kind of store needs?
import { judgeStoreSecret } from '#core/rules/instance-secrets.ts';
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';
import { readSecret } from './read-secret.ts';

export const storeSecret: Check = async ({ object }, lookup) => {
  const { nameRef, keys } = toView(InstanceView, object.spec).redisSecretRef ?? {};
  if (nameRef === undefined || keys === undefined) return [];
  const { namespace } = object.metadata;
  return judgeStoreSecret({ nameRef, keys }, namespace, await readSecret(namespace, nameRef, lookup));
};
