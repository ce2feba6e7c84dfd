// A watch on all objects of a resource, for tests: the existing ones, then every version of each, until it is stopped.
import { KubeConfig, Watch } from '@kubernetes/client-node';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';

export interface WatchOptions {
  readonly resource: Resource;
  readonly onEvent: (object: KubeObject) => void;
}

/** Resolves when the watch is open, with a function that stops it. A watch that ends by itself is opened again. */
export async function watch(kubeconfig: string, { resource, onEvent }: WatchOptions): Promise<() => void> {
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
        // A cluster that is gone is not polled.
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
