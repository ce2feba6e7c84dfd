// The cluster of an operator that has rights in one namespace only.
import { type Cluster, RESOURCES, type Selection } from '#core/ports/cluster.ts';

/**
 * Lists have the objects of the namespace; its own Namespace can be read too, as a Role may allow. Objects in other
 * namespaces or in none (other Namespaces, webhook configurations) count as absent, and are not requested.
 */
export function withinNamespace(cluster: Cluster, namespace: string): Cluster {
  const isInside = (selection: Selection) => selection.namespace === undefined || selection.namespace === namespace;
  return {
    ...cluster,
    onlyNamespace: namespace,
    get: async (resource, asked, name, how) =>
      (resource.plural === RESOURCES.namespaces.plural ? name : asked) === namespace
        ? cluster.get(resource, asked, name, how)
        : undefined,
    list: async (resource, selection = {}) =>
      isInside(selection) ? cluster.list(resource, { ...selection, namespace }) : [],
    listPages: async (resource, selection, onPage) =>
      isInside(selection) ? cluster.listPages(resource, { ...selection, namespace }, onPage) : undefined,
  };
}
