// Which parts of an update may a request not change, and does it count as a new generation?
import { type KubeObject, withMember, withMeta } from '../object.ts';
import type { Resource } from '../resources/resource.ts';
import { sameJson } from '../schema/json.ts';

/** The update with everything put back that belongs to the server, or to the other half of the object. */
export function carry(
  resource: Resource,
  old: KubeObject,
  subresource: string | undefined,
): (next: KubeObject) => KubeObject {
  if (subresource === 'status') return (next) => statusOnly(resource, old, next);
  if (subresource === 'finalize') return (next) => withMember(old, 'spec', next.spec);
  return (next) => {
    const status = resource.subresources.includes('status') ? withMember(next, 'status', old.status) : next;
    const kept = withSystemMeta(status, old);
    return resource.generations ? withMeta(kept, { generation: generationOf(resource, kept, old) }) : kept;
  };
}

function statusOnly(resource: Resource, old: KubeObject, next: KubeObject): KubeObject {
  const { managedFields, resourceVersion } = next.metadata;
  const carried = withMember(old, 'status', next.status);
  if (resource.custom) return withMeta(carried, { managedFields, resourceVersion });
  const { labels, annotations, finalizers, ownerReferences } = next.metadata;
  return withMeta(carried, { managedFields, resourceVersion, labels, annotations, finalizers, ownerReferences });
}

function withSystemMeta(next: KubeObject, old: KubeObject): KubeObject {
  const { uid } = next.metadata;
  return withMeta(next, {
    name: old.metadata.name,
    namespace: old.metadata.namespace,
    uid: uid ?? old.metadata.uid,
    creationTimestamp: old.metadata.creationTimestamp,
    deletionTimestamp: old.metadata.deletionTimestamp,
    deletionGracePeriodSeconds: old.metadata.deletionGracePeriodSeconds,
    generation: old.metadata.generation,
    generateName: next.metadata.generateName ?? old.metadata.generateName,
    selfLink: undefined,
  });
}

function generationOf(resource: Resource, next: KubeObject, old: KubeObject): number {
  const before = old.metadata.generation ?? 1;
  const judged = (object: KubeObject) => {
    const { metadata: _, apiVersion: __, status, ...rest } = object;
    return resource.subresources.includes('status') ? rest : { ...rest, status };
  };
  return sameJson(judged(next), judged(old)) ? before : before + 1;
}
