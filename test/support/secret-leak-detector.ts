// The leak detector: searches objects and output for keys and passwords of a cluster's Secrets, past ones too.
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { findShown, toOpenText, valuesIn } from '../reconcile/silence.ts';
import { openObjects } from './open-objects.ts';
import { watch } from './watch.ts';

export interface LeakDetector {
  /** Every key and password that was in a Secret since the start. */
  readonly values: ReadonlySet<string>;
  /** The values that appear in these texts or in a stored object. The status of a key may show its own value. */
  search(output: ReadonlyArray<string>): Promise<ReadonlyArray<string>>;
  /** The values that appear in these texts; for a cluster that is gone. */
  searchTexts(output: ReadonlyArray<string>): ReadonlyArray<string>;
  stop(): Promise<void>;
}

/** Starts as an administrator, and sees every version of every Secret from then on. */
export async function openLeakDetector(kubeconfig: string): Promise<LeakDetector> {
  const { request, close } = await createKubeconfigTransport(kubeconfig);
  const cluster = createCluster({ request });
  const values = new Set<string>();
  const note = (secret: KubeObject) => {
    for (const value of valuesIn(secret)) values.add(value);
  };
  const stopWatching = await watch(kubeconfig, { resource: RESOURCES.secrets, onEvent: note });
  const lookAgain = async () => {
    for (const secret of await cluster.list(RESOURCES.secrets)) note(secret);
  };
  await lookAgain();
  const searchTexts = (output: ReadonlyArray<string>) => findShown(values, output.join('\n'));
  return {
    values,
    search: async (output) => {
      await lookAgain();
      return searchTexts([...output, toOpenText(await openObjects(cluster))]);
    },
    searchTexts,
    stop: async () => {
      stopWatching();
      await close();
    },
  };
}
