// The cluster of an operator that has rights in one namespace only: nothing outside it is asked for, or there.
import type { Cluster, Selection } from '#core/ports/cluster.ts';

/**
 * Lists are of the namespace. What is elsewhere, or in no namespace (labels of namespaces, webhook configurations),
 * counts as absent.
 */
export function withinNamespace(cluster: Cluster, namespace: string): Cluster {
  const isInside = (selection: Selection) => selection.namespace === undefined || selection.namespace === namespace;
  return {
    ...cluster,
    get: async (resource, asked, name, how) =>
      asked === namespace ? cluster.get(resource, asked, name, how) : undefined,
    list: async (resource, selection = {}) =>
      isInside(selection) ? cluster.list(resource, { ...selection, namespace }) : [],
    listPages: async (resource, selection, onPage) =>
      isInside(selection) ? cluster.listPages(resource, { ...selection, namespace }, onPage) : undefined,
  };
}
