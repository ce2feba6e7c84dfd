// The rule about aliases and e-mail addresses: each is one object's on an instance.
import type { Finding } from '../finding.ts';
import { type InstanceName, toPath } from './instance.ts';

export interface TakenAlias {
  /** Where the wanted alias stands. */
  readonly path: string;
  readonly alias: string;
  readonly instance: InstanceName;
  /** The namespace of the object that wants it. */
  readonly from: string;
  readonly holder: { readonly kind: string; readonly namespace: string | undefined; readonly name: string };
  /** The key of a VirtualKey that was deleted with `deletionPolicy: Retain`: this Secret holds it, and the alias. */
  readonly retained?: string | undefined;
}

export function aliasTaken({ path, alias, instance, from, holder, retained }: TakenAlias): Finding {
  const { kind, namespace, name } = holder;
  // An object of another namespace is not named: not everybody may know it.
  const isNear = namespace === from;
  const who = isNear ? `${kind} ${JSON.stringify(name)}` : `a ${kind} of another namespace`;
  const left = retained === undefined ? who : `${who}, deleted with its key retained,`;
  const orElse =
    retained === undefined || !isNear
      ? 'delete the other one first'
      : `delete Secret ${JSON.stringify(retained)} first`;
  const message = `${left} has it already on instance ${JSON.stringify(toPath(instance))}; choose another, or ${orElse}`;
  return { rule: 'AliasTaken', type: 'Duplicate value', path, value: alias, message, effect: 'refuse' };
}
