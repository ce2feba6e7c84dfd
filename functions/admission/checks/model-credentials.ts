// Are the credential Secrets of the model entries there, with every entry that they map?
import { judgeCredentials } from '#core/rules/instance-secrets.ts';
import type { Check } from '../check.ts';
import { InstanceView, type SecretRefView, toView } from '../spec-views.ts';
import { toRead } from './read-secret.ts';

export const modelCredentials: Check = async ({ object }, lookup) => {
  const { namespace } = object.metadata;
  const { models } = toView(InstanceView, object.spec);
  const secrets = await Promise.all(
    models.map(({ modelCredentials: { nameRef } = NONE }) => nameRef && lookup.secret(namespace, nameRef)),
  );
  return models.flatMap(({ identifier, modelCredentials: { nameRef, keys } = NONE }, index) => {
    const secret = secrets[index] || undefined;
    return nameRef ? judgeCredentials({ nameRef, keys }, { index, identifier }, namespace, toRead(secret)) : [];
  });
};

const NONE: SecretRefView = { nameRef: undefined, keys: {} };
