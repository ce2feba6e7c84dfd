// What does a run see that is served from a cache which has not heard of the last write yet?

import type { Cluster, KubeObject, Resource } from '#core/ports/cluster.ts';
import type { MemoryCluster } from '../../doubles/cluster.ts';

/** While it lags, a list shows its kind as it was before the last write to it. Everything else is true. */
export function createLaggingLists() {
  const before = new Map<string, ReadonlyArray<KubeObject>>();
  let lags = false;
  const through = (memory: MemoryCluster): Cluster => {
    const remember = (resource: Resource) => before.set(resource.plural, memory.objects(resource));
    const list: Cluster['list'] = async (resource, selection = {}) => {
      const now = await memory.list(resource, selection);
      const then = before.get(resource.plural);
      const { namespace, fieldSelector, labelSelector } = selection;
      if (!lags || then === undefined || fieldSelector !== undefined || labelSelector !== undefined) return now;
      return then.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
    };
    return {
      ...memory,
      list,
      listPages: async (resource, selection, onPage) => onPage(await list(resource, selection), false),
      create: (resource, object) => {
        remember(resource);
        return memory.create(resource, object);
      },
      patch: (resource, ...rest) => {
        remember(resource);
        return memory.patch(resource, ...rest);
      },
      apply: (resource, object) => {
        remember(resource);
        return memory.apply(resource, object);
      },
      delete: (resource, ...rest) => {
        remember(resource);
        return memory.delete(resource, ...rest);
      },
    };
  };
  return {
    through,
    lag: (on: boolean) => {
      lags = on;
    },
  };
}
