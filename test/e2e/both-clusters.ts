// Tests of the whole stack, on the embedded cluster and on a real API server.
import { afterAll, beforeAll, expect } from 'vitest';
import { bothInCampaigns, CLUSTERS, type ClusterName } from '../support/clusters.ts';
import { describeSideBySide } from '../support/side-by-side.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';

type Tests = (stack: () => TestStack, cluster: ClusterName) => void;

const OPTIONS = { embedded: [], real: ['--cluster', 'envtest'] } as const;

/** Runs the tests on one stack per cluster, started with these options; each stack must stop cleanly. */
export function describeOnBothClusters(name: string, options: ReadonlyArray<string>, tests: Tests): void {
  describeOn(CLUSTERS, name, options, tests);
}

/** On one stack, except in `npm run campaigns`: for tests in which the clusters rarely differ. */
export function describeOnOneCluster(name: string, options: ReadonlyArray<string>, tests: Tests): void {
  describeOn(bothInCampaigns(), name, options, tests);
}

function describeOn(clusters: typeof CLUSTERS, name: string, options: ReadonlyArray<string>, tests: Tests): void {
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
