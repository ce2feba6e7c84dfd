// A watch on all objects of a resource, for tests: what there is, then every version of each, until it is told to stop.
import { KubeConfig, Watch } from '@kubernetes/client-node';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';

export interface Watching {
  readonly resource: Resource;
  readonly onEvent: (object: KubeObject) => void;
}

/** Resolves when it stands; answers how to stop it. One that ends by itself is opened again. */
export async function watch(kubeconfig: string, { resource, onEvent }: Watching): Promise<() => void> {
  const { group, version, plural } = resource;
  const path = group === '' ? `/api/${version}/${plural}` : `/apis/${group}/${version}/${plural}`;
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  let isOver = false;
  let current: AbortController | undefined;
  const open = async () => {
    current = await new Watch(config).watch(
      path,
      {},
      (_, object: KubeObject) => onEvent(object),
      () => {
        // A cluster that is gone is not asked again and again.
        if (!isOver) setTimeout(() => isOver || open().catch(() => undefined), 100);
      },
    );
  };
  await open();
  return () => {
    isOver = true;
    current?.abort();
  };
}
