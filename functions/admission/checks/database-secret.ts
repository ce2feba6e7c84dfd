// Is the database Secret there, with every entry that the instance maps?
import { judgeDatabaseSecret } from '#core/rules/instance-secrets.ts';
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';
import { readSecret } from './read-secret.ts';

export const databaseSecret: Check = async ({ object }, lookup) => {
  const { nameRef, keys } = toView(InstanceView, object.spec).databaseSecretRef ?? {};
  if (nameRef === undefined || keys === undefined) return [];
  const { namespace } = object.metadata;
  return judgeDatabaseSecret({ nameRef, keys }, namespace, await readSecret(namespace, nameRef, lookup));
};
