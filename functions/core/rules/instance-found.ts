// Is there an instance of this name that admits the namespace of a key, a user or a team?
import type { Finding } from '../finding.ts';

/** What `spec.connectionRef.instanceRef` says. */
export interface InstanceName {
  readonly namespace: string;
  readonly name: string;
}

export const toPath = ({ namespace, name }: InstanceName): string => `${namespace}/${name}`;

const at = (instance: InstanceName) => ({
  rule: 'InstanceNotFound',
  path: 'spec.connectionRef.instanceRef',
  value: toPath(instance),
});

/** Also where there is one that does not admit the namespace: from there nobody can tell the two apart. */
export const instanceNotFound = (instance: InstanceName, from: string): Finding => ({
  ...at(instance),
  message:
    `there is no GatewayInstance of this name that admits namespace ${JSON.stringify(from)}; ` +
    'create it first (in the same file: above this), correct name and namespace, or ask its owner to admit this namespace',
  effect: 'refuse-unless-dry-run',
});

/** For who was admitted before, and so may know that it is there. */
export const namespaceNotAllowed = (instance: InstanceName, from: string): Finding => ({
  ...at(instance),
  rule: 'NamespaceNotAllowed',
  message: `does not admit namespace ${JSON.stringify(from)} any more; ask its owner to change spec.allowedNamespaces`,
  effect: 'refuse',
});

/** For who may know that it is there. */
export const instanceIsDeleted = (instance: InstanceName): Finding => ({
  ...at(instance),
  message: 'is being deleted; choose another instance, or wait until it is gone and create it anew',
  effect: 'refuse',
});
