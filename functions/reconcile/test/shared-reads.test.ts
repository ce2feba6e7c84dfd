// Secrets that several instances name.
import { expect, test } from 'vitest';
import { type Cluster, ClusterError } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { createHarness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createSharedReads } from '../observe/shared-reads.ts';

test('instances that a resync looks at together read a Secret that all of them name once', async () => {
  const reads: string[] = [];
  const through = (memory: Cluster): Cluster => ({
    ...memory,
    get: async (resource, namespace, name, how) => {
      if (resource.kind === 'Secret') reads.push(name);
      await new Promise((resolve) => setImmediate(resolve));
      return memory.get(resource, namespace, name, how);
    },
  });
  const harness = createHarness({ through });
  const names = Array.from({ length: 8 }, (_, index) => `i-${index}`);
  await harness.apply(...makeSecrets(), ...names.map((name) => makeInstance({}, name)));
  await harness.resync();
  reads.length = 0;
  await harness.resync();
  expect(reads.length).toBeGreaterThan(0);
  expect(reads).toEqual([...new Set(reads)]);
  for (const name of names) expect(await harness.ready(gatewayInstances, name)).toBe('True Ready');
});

test('a read is shared while it is under way, and neither a Secret nor an error is kept', async () => {
  const answers: Array<PromiseWithResolvers<undefined>> = [];
  const read = createSharedReads({
    get: () => {
      const answer = Promise.withResolvers<undefined>();
      answers.push(answer);
      return answer.promise;
    },
  });
  const both = [read('a', 'one'), read('a', 'one')];
  const others = [read('b', 'one'), read('a', 'two')];
  expect(answers).toHaveLength(3);
  answers[0]?.reject(new ClusterError('no answer'));
  for (const one of both) await expect(one).rejects.toThrow('no answer');
  const again = read('a', 'one');
  expect(answers).toHaveLength(4);
  for (const { resolve } of answers) resolve(undefined);
  expect(await Promise.all([again, ...others])).toEqual([undefined, undefined, undefined]);
});
