// Does something that is not ours stand where a key, or its Secret, would be?
import type { Finding } from '../finding.ts';

/** A Secret that is not this key's has the name that the key's would get. `template` is `spec.secretTemplate.name`. */
export function secretConflict(key: string, template: string | undefined, wanted: string): Finding {
  const message =
    template === undefined
      ? `a Secret ${JSON.stringify(wanted)} that is not this key's is there already; delete it, or name another in spec.secretTemplate.name`
      : "a Secret of this name that is not this key's is there already; choose another name, or delete that Secret";
  const path = template === undefined ? 'metadata.name' : 'spec.secretTemplate.name';
  return { rule: 'SecretConflict', path, value: template ?? key, message, effect: 'refuse' };
}

/** A VirtualKey that the User does not own has the name that the User's key would get. It is left alone. */
export const keyConflict = (key: string): Finding => ({
  rule: 'KeyConflict',
  path: 'spec.autoCreateKey',
  value: undefined,
  message: `a VirtualKey ${JSON.stringify(key)} that this User does not own is there already, so the User gets no key; delete that VirtualKey, or set autoCreateKey to false`,
  effect: 'warn',
});
