// Which objects exist right now, in key order?
import type { KubeObject } from '../object.ts';
import type { Key, StoredEvent } from './history.ts';

/** The write-through copy in memory: reads never touch the database. */
export type Shelf = {
  get(key: Key): KubeObject | undefined;
  /** In the order of `namespace/name`, as the real server lists. */
  list(resource: string, namespace?: string): KubeObject[];
  apply(event: Key & Pick<StoredEvent, 'type' | 'object'>): void;
  resources(): string[];
};

type Drawer = { readonly objects: Map<string, KubeObject>; order: string[] | undefined };

export function createShelf(): Shelf {
  const drawers = new Map<string, Drawer>();

  function drawer(resource: string): Drawer {
    const found = drawers.get(resource) ?? { objects: new Map<string, KubeObject>(), order: undefined };
    drawers.set(resource, found);
    return found;
  }

  return {
    get: ({ resource, namespace, name }) => drawers.get(resource)?.objects.get(pathOf(namespace, name)),
    list(resource, namespace) {
      const from = drawer(resource);
      from.order ??= [...from.objects.keys()].sort();
      const paths =
        namespace === undefined ? from.order : from.order.filter((path) => path.startsWith(`${namespace}/`));
      return paths.flatMap((path) => from.objects.get(path) ?? []);
    },
    apply({ resource, namespace, name, type, object }) {
      const to = drawer(resource);
      const path = pathOf(namespace, name);
      if (type === 'DELETED') to.objects.delete(path);
      else to.objects.set(path, object);
      if (type !== 'MODIFIED') to.order = undefined;
    },
    resources: () => [...drawers.keys()],
  };
}

function pathOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
