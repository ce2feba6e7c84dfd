// Conflicts with other objects: an alias or e-mail address on an instance, a Secret or a VirtualKey of the wanted name.
// None is ever taken over.
import type { Finding } from './finding.ts';
import { type InstanceName, toPath } from './instance.ts';

export interface TakenAlias {
  /** The path of the wanted alias. */
  readonly path: string;
  readonly alias: string;
  readonly instance: InstanceName;
  /** The namespace of the object that wants it. */
  readonly from: string;
  readonly holder: { readonly kind: string; readonly namespace: string | undefined; readonly name: string };
  /** The Secret of a VirtualKey that was deleted with `deletionPolicy: Retain`: while it exists, the alias is taken. */
  readonly retained?: string | undefined;
  /**
   * The Secret of the object that wants the alias, if it has the value of the retained key, but not its annotations.
   */
  readonly copy?: string | undefined;
}

export function aliasTaken({ path, alias, instance, from, holder, retained, copy }: TakenAlias): Finding<'AliasTaken'> {
  const { kind, namespace, name } = holder;
  // An object of another namespace is not named, because the reader may not be allowed to know it.
  const isNear = namespace === from;
  const who = isNear ? `${kind} ${JSON.stringify(name)}` : `a ${kind} of another namespace`;
  const left = retained === undefined ? who : `${who}, deleted with its key retained,`;
  const orElse =
    retained === undefined || !isNear
      ? 'delete the other one first'
      : `delete Secret ${JSON.stringify(retained)} first`;
  const used = `is already used by ${left} on instance ${JSON.stringify(toPath(instance))}`;
  const message =
    copy === undefined
      ? `${used}; choose another, or ${orElse}`
      : `${used}. Secret ${JSON.stringify(copy)} has the key value, but not the annotations of the retained Secret: copy that Secret with its labels and annotations to adopt the key, or choose another alias`;
  return { rule: 'AliasTaken', type: 'Duplicate value', path, value: alias, message, effect: 'refuse' };
}

/**
 * A Secret that is not this key's has the name that the key's would get. `template` is `spec.secretTemplate.name`.
 * `isCopy`: it may be an incomplete copy of the Secret of a retained key.
 */
export function secretConflict(
  key: string,
  template: string | undefined,
  wanted: string,
  isCopy = false,
): Finding<'SecretConflict'> {
  const conflict =
    template === undefined
      ? `Secret ${JSON.stringify(wanted)} already exists and is not this key's; delete it, or name another in spec.secretTemplate.name`
      : "a Secret of this name already exists and is not this key's; choose another name, or delete that Secret";
  const adopt =
    '. To adopt a retained key, delete this VirtualKey, copy the Secret of the key with its labels and annotations, then create this VirtualKey again';
  const message = isCopy ? `${conflict}${adopt}` : conflict;
  const path = template === undefined ? 'metadata.name' : 'spec.secretTemplate.name';
  return { rule: 'SecretConflict', type: 'Invalid value', path, value: template ?? key, message, effect: 'refuse' };
}

/**
 * A VirtualKey that the User does not own has the name that the User's key would get. That VirtualKey is left alone.
 */
export const keyConflict = (key: string): Finding<'KeyConflict'> => ({
  rule: 'KeyConflict',
  path: 'spec.autoCreateKey',
  value: undefined,
  message: `VirtualKey ${JSON.stringify(key)} already exists, is not this User's and may have clients, so the User gets no key; set autoCreateKey to false, or create a User of another name in place of this one`,
  effect: 'warn',
});
