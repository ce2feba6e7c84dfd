// Is there such an instance, and does it admit this namespace? Who is not admitted gets the answer of a missing one.
import type { Check } from '../check.ts';
import type { Finding } from '../finding.ts';
import { instanceOf } from './instance-of.ts';

export const instanceExists: Check = async ({ object }, lookup) => {
  const reference = await instanceOf(object, lookup);
  if (reference === undefined) return [];
  const { namespace, name, instance } = reference;
  const found = { path: 'spec.connectionRef.instanceRef', value: `${namespace}/${name}` };
  if (instance === undefined) {
    const message =
      `there is no GatewayInstance of this name that admits namespace ${JSON.stringify(object.metadata.namespace)}: ` +
      'create it first, correct name and namespace, or ask its owner to admit this namespace';
    return [{ rule: 'InstanceNotFound', ...found, message, effect: 'refuse-unless-dry-run' } satisfies Finding];
  }
  if (instance.metadata.deletionTimestamp === undefined) return [];
  const message = 'is being deleted: choose another instance, or wait until it is gone and create it anew';
  return [{ rule: 'InstanceDeleted', ...found, message, effect: 'refuse' } satisfies Finding];
};
