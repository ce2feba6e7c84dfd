// Are the credential Secrets of the model entries there, with every entry that they map?
import { judgeCredentials } from '#core/rules/instance-secrets.ts';
import type { Check } from '../check.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';
import { readSecret } from './read-secret.ts';

export const modelCredentials: Check = async ({ object }, lookup) => {
  const { namespace } = object.metadata;
  const judgeEntry = async ({ identifier, modelCredentials }: ModelEntryView, index: number) => {
    const { nameRef, keys } = modelCredentials ?? {};
    if (nameRef === undefined || keys === undefined) return [];
    return judgeCredentials(
      { nameRef, keys },
      { index, identifier },
      namespace,
      await readSecret(namespace, nameRef, lookup),
    );
  };
  return (await Promise.all(toView(InstanceView, object.spec).models.map(judgeEntry))).flat();
};
