// Is a User or Team that an object refers to there, and of the same instance?
import type { Effect, Finding } from '../finding.ts';
import { type InstanceName, toPath } from './instance-found.ts';

export interface Reference {
  readonly kind: 'User' | 'Team';
  /** Where the reference stands, and which name. */
  readonly path: string;
  readonly name: string;
  /** Of the object that refers, and so of what it refers to. */
  readonly namespace: string;
  /** What each problem leads to; a refusal by default. */
  readonly effect?: Effect | undefined;
}

/** What is known of the User or Team; `instance` is undefined where its own reference is malformed. */
export interface Referred {
  readonly instance: InstanceName | undefined;
  readonly isDeleted: boolean;
}

/** `instance` is what the object itself says; undefined where that cannot be compared (it is not found: that is said already). */
export function referenceFound(
  { kind, path, name, namespace, effect }: Reference,
  found: Referred | undefined,
  instance: InstanceName | undefined,
): Finding | undefined {
  const at = { path, value: name };
  if (found === undefined || found.isDeleted) {
    const wrong =
      found === undefined
        ? `there is no ${kind} of this name in namespace ${JSON.stringify(namespace)}`
        : `this ${kind} is being deleted`;
    // kubectl applies a file from its top to its end. Who only warns takes either order.
    const create = effect === 'warn' ? 'create it' : 'create it first (in the same file: above this)';
    const message = `${wrong}; ${create}, or correct the name`;
    return { rule: `${kind}NotFound`, ...at, message, effect: effect ?? 'refuse-unless-dry-run' };
  }
  const other = found.instance;
  if (instance === undefined || (other !== undefined && toPath(other) === toPath(instance))) return undefined;
  const where = other === undefined ? '' : ` (${toPath(other)})`;
  const message = `this ${kind} belongs to another instance${where}; refer to one of the same instance`;
  return { rule: `${kind}OfOtherInstance`, ...at, message, effect: effect ?? 'refuse' };
}
