// Search for keys and passwords of a cluster's Secrets, past ones too, in its objects and in what processes print.
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { openObjects } from './open-objects.ts';
import { findShown, toOpenText, valuesIn } from './reconcile/silence.ts';
import { watch } from './watch.ts';

export interface LeakDetector {
  /** Every key and password that was in a Secret since it began. */
  readonly values: ReadonlySet<string>;
  /** Those that stand in these texts, or in an object as the API server has it; the status of its own key may show one. */
  search(said: ReadonlyArray<string>): Promise<ReadonlyArray<string>>;
  /** The same of texts alone: for a cluster that is gone. */
  searchTexts(said: ReadonlyArray<string>): ReadonlyArray<string>;
  stop(): Promise<void>;
}

/** As an administrator. From now on it sees every version of every Secret. */
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
  const searchTexts = (said: ReadonlyArray<string>) => findShown(values, said.join('\n'));
  return {
    values,
    search: async (said) => {
      await lookAgain();
      return searchTexts([...said, toOpenText(await openObjects(cluster))]);
    },
    searchTexts,
    stop: async () => {
      stopWatching();
      await close();
    },
  };
}
