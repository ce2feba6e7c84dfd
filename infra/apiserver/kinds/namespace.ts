// What does the server itself say about a Namespace?
import { type KubeObject, withMember, withMeta } from '../object.ts';
import type { Strategy } from '../resources/resource.ts';
import { objectAt } from './member-of.ts';

export const namespaceFinalizer = 'kubernetes';

/** `spec.finalizers` keeps a namespace until its content is gone; only /finalize changes it. */
export const namespace: Strategy = {
  prepare(object, old) {
    const labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name ?? '' };
    const labelled = object.metadata.name === undefined ? object : withMeta(object, { labels });
    const spec = old === undefined ? { finalizers: [namespaceFinalizer] } : (old.spec ?? {});
    return withMember(labelled, 'spec', spec);
  },
  observe(object) {
    const phase = object.metadata.deletionTimestamp === undefined ? 'Active' : 'Terminating';
    return withMember(object, 'status', { ...objectAt(object, 'status'), phase });
  },
  selectable: {
    'status.phase': (object) => String(objectAt(object, 'status').phase ?? ''),
    name: ({ metadata }) => metadata.name ?? '',
  },
};

export function namespaceFinalizers(object: KubeObject): readonly string[] {
  const { finalizers } = objectAt(object, 'spec');
  return Array.isArray(finalizers) ? finalizers : [];
}
