// All objects that exist, in memory and in key order: reads never touch the database.
import type { KubeObject } from '../object.ts';
import type { Key, StoredEvent } from './database.ts';

/** The objects of one resource; `order` is sorted when the next list needs it. */
type Bucket = { readonly objects: Map<string, KubeObject>; order: string[] | undefined };

export function createObjectCache() {
  const buckets = new Map<string, Bucket>();

  function bucketOf(resource: string): Bucket {
    const bucket = buckets.get(resource) ?? { objects: new Map<string, KubeObject>(), order: undefined };
    buckets.set(resource, bucket);
    return bucket;
  }

  return {
    get: ({ resource, namespace, name }: Key): KubeObject | undefined =>
      buckets.get(resource)?.objects.get(pathOf(namespace, name)),
    /** In the order of `namespace/name`, as the real server lists. */
    list(resource: string, namespace?: string): KubeObject[] {
      const bucket = bucketOf(resource);
      bucket.order ??= [...bucket.objects.keys()].sort();
      const paths =
        namespace === undefined ? bucket.order : bucket.order.filter((path) => path.startsWith(`${namespace}/`));
      return paths.flatMap((path) => bucket.objects.get(path) ?? []);
    },
    apply({ resource, namespace, name, type, object }: Key & Pick<StoredEvent, 'type' | 'object'>) {
      const bucket = bucketOf(resource);
      const path = pathOf(namespace, name);
      if (type === 'DELETED') bucket.objects.delete(path);
      else bucket.objects.set(path, object);
      if (type !== 'MODIFIED') bucket.order = undefined;
    },
    resources: () => [...buckets.keys()],
  };
}

function pathOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
