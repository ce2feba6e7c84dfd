// Tests of the whole stack, on the embedded cluster and on a real API server.
import { afterAll, beforeAll, expect } from 'vitest';
import { CLUSTERS, type ClusterName } from '../support/clusters.ts';
import { describeSideBySide } from '../support/side-by-side.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';

const OPTIONS = { embedded: [], real: ['--cluster', 'envtest'] } as const;

/** Runs the tests on one stack per cluster, started with these options; each stack must stop cleanly. */
export function describeOnBothClusters(
  name: string,
  options: ReadonlyArray<string>,
  tests: (stack: () => TestStack, cluster: ClusterName) => void,
  clusters = CLUSTERS,
): void {
  describeSideBySide(clusters, name, (cluster) => {
    let stack: TestStack;
    beforeAll(async () => {
      stack = await startTestStack([...options, ...OPTIONS[cluster.name]]);
    });
    afterAll(async () => {
      expect(await stack?.stop()).toBe(0);
    });
    tests(() => stack, cluster.name);
  });
}
