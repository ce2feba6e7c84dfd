// The rule about Users and Teams that an object refers to: each exists, and belongs to the same instance.
import type { Finding } from './finding.ts';
import { type InstanceName, isSameInstance, toPath } from './instance.ts';

export interface Reference {
  readonly kind: 'User' | 'Team';
  /** The path of the reference's name. */
  readonly path: string;
  readonly name: string;
  /** The namespace of the referring object, and so of the User or Team. */
  readonly namespace: string;
}

/** The facts about the User or Team. `instance`: undefined if its own reference is malformed. */
export interface ReferenceFacts {
  readonly instance: InstanceName | undefined;
  readonly isDeleted: boolean;
}

/**
 * `instance`: that of the referring object; undefined if it was not found (a finding of its own) and cannot be
 * compared.
 */
export function referenceFound(
  { kind, path, name, namespace }: Reference,
  found: ReferenceFacts | undefined,
  instance: InstanceName | undefined,
): Finding<`${Reference['kind']}${'NotFound' | 'OfOtherInstance'}`> | undefined {
  const at = { path, value: name };
  if (found === undefined || found.isDeleted) {
    const [type, wrong] =
      found === undefined
        ? (['Not found', `no ${kind} of this name is in namespace ${JSON.stringify(namespace)}`] as const)
        : (['Invalid value', `this ${kind} is being deleted`] as const);
    // kubectl applies a file from its top to its end.
    const message = `${wrong}; correct the name, or create it first (earlier in the same file)`;
    return { rule: `${kind}NotFound`, type, ...at, message, effect: 'refuse-unless-dry-run' };
  }
  const other = found.instance;
  if (instance === undefined || (other !== undefined && isSameInstance(other, instance))) return undefined;
  const where = other === undefined ? '' : ` (${toPath(other)})`;
  const message = `must be a ${kind} of the same instance, but is of another one${where}; choose one of the same`;
  return { rule: `${kind}OfOtherInstance`, type: 'Invalid value', ...at, message, effect: 'refuse' };
}
