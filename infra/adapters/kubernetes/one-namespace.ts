// The cluster of an operator that has rights in one namespace only.
import type { Cluster, Selection } from '#core/ports/cluster.ts';

/**
 * Lists have the objects of the namespace. Objects in other namespaces or in none (Namespaces, webhook configurations)
 * count as absent, and are not requested.
 */
export function withinNamespace(cluster: Cluster, namespace: string): Cluster {
  const isInside = (selection: Selection) => selection.namespace === undefined || selection.namespace === namespace;
  return {
    ...cluster,
    onlyNamespace: namespace,
    get: async (resource, asked, name, how) =>
      asked === namespace ? cluster.get(resource, asked, name, how) : undefined,
    list: async (resource, selection = {}) =>
      isInside(selection) ? cluster.list(resource, { ...selection, namespace }) : [],
    listPages: async (resource, selection, onPage) =>
      isInside(selection) ? cluster.listPages(resource, { ...selection, namespace }, onPage) : undefined,
  };
}
