// Are the credential Secrets of the model entries there, with every entry that they map?
import type { Check } from '../check.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';
import { missingEntries, readSecret } from './secret-entries.ts';

export const modelCredentials: Check = async ({ object }, lookup) => {
  const judgeEntry = async ({ modelCredentials: credentials }: ModelEntryView, index: number) => {
    if (credentials?.nameRef === undefined) return [];
    const at = `spec.models[${index}].modelCredentials`;
    const use = {
      namespace: object.metadata.namespace,
      name: credentials.nameRef,
      namePath: `${at}.nameRef`,
      keysPath: `${at}.keys`,
      keys: credentials.keys,
    };
    const secret = await readSecret(use, lookup);
    return secret.found ? missingEntries(use, secret.data) : secret.findings;
  };
  return (await Promise.all(toView(InstanceView, object.spec).models.map(judgeEntry))).flat();
};
