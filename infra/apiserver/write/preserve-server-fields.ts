// Fields of an update that its request may not change, put back from the stored object; and the generation it makes.
import { type KubeObject, withMember, withMeta } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import type { Resource } from '../resource.ts';
import { sameJson } from '../schema/json.ts';

type Target = Pick<ApiRequest, 'resource' | 'subresource'>;

/**
 * The update with everything put back that belongs to the server, or to the other half of the object. A server-side
 * apply alone writes managedFields.
 */
export function preserveServerFields({ resource, subresource }: Target, old: KubeObject, isApply = false) {
  const managed = (next: KubeObject) => ({ managedFields: (isApply ? next : old).metadata.managedFields });
  if (subresource === 'status') return (next: KubeObject) => withMeta(withStatusOf(resource, old, next), managed(next));
  if (subresource === 'finalize') return (next: KubeObject) => withMember(old, 'spec', next.spec);
  return (next: KubeObject) => {
    const body = resource.subresources.includes('status') ? withMember(next, 'status', old.status) : next;
    const whole = withMeta(withSystemMeta(body, old), managed(next));
    return resource.generations ? withMeta(whole, { generation: generationOf(resource, whole, old) }) : whole;
  };
}

function withStatusOf(resource: Resource, old: KubeObject, next: KubeObject): KubeObject {
  const { resourceVersion, labels, annotations, finalizers, ownerReferences } = next.metadata;
  const written = withMeta(withMember(old, 'status', next.status), { resourceVersion });
  return resource.custom ? written : withMeta(written, { labels, annotations, finalizers, ownerReferences });
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

/** One more when anything but metadata changed, and the status where it has a subresource of its own. */
function generationOf(resource: Resource, next: KubeObject, old: KubeObject): number {
  const before = old.metadata.generation ?? 1;
  const counted = (object: KubeObject) => {
    const { metadata: _, apiVersion: __, status, ...rest } = object;
    return resource.subresources.includes('status') ? rest : { ...rest, status };
  };
  return sameJson(counted(next), counted(old)) ? before : before + 1;
}
