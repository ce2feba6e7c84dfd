// Namespaces: labelled with their name, held by a finalizer until their content is gone.

import { type KubeObject, withMember, withMeta } from '../object.ts';
import type { Strategy } from '../resource.ts';
import { objectAt } from '../schema/json.ts';

export const namespaceFinalizer = 'kubernetes';

/** `spec.finalizers` keeps a namespace until its content is gone; only /finalize changes it. */
export const namespace: Strategy = {
  applyDefaults: labelled,
  prepareForCreate: (object) => withMember(labelled(object), 'spec', { finalizers: [namespaceFinalizer] }),
  prepareForUpdate: (object, old) => withMember(object, 'spec', old.spec ?? {}),
  updateStatus(object) {
    const phase = object.metadata.deletionTimestamp === undefined ? 'Active' : 'Terminating';
    return withMember(object, 'status', { ...objectAt(object, 'status'), phase });
  },
};

function labelled(object: KubeObject): KubeObject {
  const { name, labels } = object.metadata;
  return name === undefined ? object : withMeta(object, { labels: { ...labels, 'kubernetes.io/metadata.name': name } });
}

export function namespaceFinalizers(object: KubeObject): readonly string[] {
  const { finalizers } = objectAt(object, 'spec');
  return Array.isArray(finalizers) ? finalizers : [];
}
