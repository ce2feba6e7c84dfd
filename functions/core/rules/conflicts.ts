// Rules about what stands where a key, or its Secret, would be: nothing that is not ours is ever taken over.
import type { Finding } from '../finding.ts';

/** A Secret that is not this key's has the name that the key's would get. `template` is `spec.secretTemplate.name`. */
export function secretConflict(key: string, template: string | undefined, wanted: string): Finding {
  const message =
    template === undefined
      ? `Secret ${JSON.stringify(wanted)} is there already and is not this key's; delete it, or name another in spec.secretTemplate.name`
      : "a Secret of this name is there already and is not this key's; choose another name, or delete that Secret";
  const path = template === undefined ? 'metadata.name' : 'spec.secretTemplate.name';
  return { rule: 'SecretConflict', type: 'Invalid value', path, value: template ?? key, message, effect: 'refuse' };
}

/** A VirtualKey that the User does not own has the name that the User's key would get. It is left alone. */
export const keyConflict = (key: string): Finding => ({
  rule: 'KeyConflict',
  path: 'spec.autoCreateKey',
  value: undefined,
  message: `VirtualKey ${JSON.stringify(key)} is there already and is not this User's, so the User gets no key; delete that VirtualKey, or set autoCreateKey to false`,
  effect: 'warn',
});
