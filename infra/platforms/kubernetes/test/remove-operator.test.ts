// `Delete` while a finalizer of another program blocks an object.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Cluster } from '#core/ports/cluster.ts';
import { gatewayInstances, kinds, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { FINALIZER } from '#crds/names/group.ts';
import { CONFIGURATION_NAME, WEBHOOK_CONFIGURATIONS } from '../../../../functions/reconcile/certificates/objects.ts';
import { createHarness, type Harness } from '../../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../../test/reconcile/objects.ts';
import { removeOperator } from '../remove-operator.ts';

const FOREIGN = 'example.com/x';

let harness: Harness;
let output: string[];
beforeEach(async () => {
  harness = createHarness();
  output = [];
  await harness.apply(
    ...makeSecrets(),
    makeInstance(),
    makeTeam(),
    makeUser(),
    makeKey(),
    makeKey({ keyAlias: 'b' }, 'b'),
  );
  for (const resource of WEBHOOK_CONFIGURATIONS) {
    const { group, version, kind } = resource;
    await harness.cluster.create(resource, {
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name: CONFIGURATION_NAME },
    });
  }
  await harness.resync();
});

/** `clean`: what happens every ten seconds. */
const remove = (clean: () => Promise<unknown>) => {
  const pause = async () => {
    harness.clock.pass(10_000);
    await clean();
  };
  const print = (line: string) => void output.push(line);
  return removeOperator({ cluster: harness.cluster, print, now: harness.clock.now, pause }, 'Delete');
};
const addForeignFinalizer = async (kind: (typeof kinds)[number], name: string) => {
  const finalizers = [...((await harness.get(kind, name))?.metadata.finalizers ?? []), FOREIGN];
  await harness.edit(kind, name, { metadata: { finalizers } });
};
const objects = () => kinds.flatMap((kind) => harness.cluster.objects(kind).map(({ metadata }) => metadata.name));
const webhooks = () => WEBHOOK_CONFIGURATIONS.flatMap((resource) => harness.cluster.objects(resource)).length;

describe('an object that a finalizer of another program blocks', () => {
  test.each([
    [virtualKeys, 'chat', 'virtualkeys.auth'],
    [users, 'alice', 'users.auth'],
    [teams, 'research', 'teams.auth'],
    [gatewayInstances, 'main', 'gatewayinstances.instance'],
  ])(
    'of kind $kind is reported with the command that frees it; all others are cleaned up, and the webhooks stay',
    async (kind, name, resource) => {
      await addForeignFinalizer(kind, name);
      const value = await harness.value('chat-key');
      await expect(remove(harness.resync)).rejects.toThrow(
        'uninstall is not complete: finalizers of other programs block 1 of the deleted objects',
      );
      expect(output.filter((line) => line.includes('blocked by'))).toEqual([
        `${kind.kind} default/${name} is blocked by the finalizer ${FOREIGN}`,
      ]);
      expect(output.at(-1)).toContain(`kubectl patch ${resource}.gateway-operator.dev ${name} --namespace default`);
      expect(objects()).toEqual([name]);
      expect(webhooks()).toBe(2);
      expect(await harness.works(value)).toBe(false);
      expect(output.filter((line) => line.startsWith('released'))).toEqual([]);
      // As the printed command does.
      await harness.edit(kind, name, { metadata: { finalizers: null } });
      await remove(harness.resync);
      expect([objects(), webhooks()]).toEqual([[], 0]);
      expect(output.at(-1)).toContain('No webhook and no finalizer of the operator is left in this cluster');
    },
  );

  test('does not stop a removal if no operator runs: everything else is freed, and then it is reported', async () => {
    await addForeignFinalizer(virtualKeys, 'b');
    await addForeignFinalizer(gatewayInstances, 'main');
    await expect(remove(async () => undefined)).rejects.toThrow('block 2 of the deleted objects');
    expect(output.filter((line) => line.includes('blocked by'))).toHaveLength(2);
    expect(objects().toSorted()).toEqual(['b', 'main']);
    expect(webhooks()).toBe(0);
    for (const kind of kinds)
      for (const { metadata } of harness.cluster.objects(kind)) expect(metadata.finalizers).not.toContain(FINALIZER);
  });
});

test('an object whose other finalizer goes by itself is not reported', async () => {
  await addForeignFinalizer(virtualKeys, 'chat');
  let runs = 0;
  await remove(async () => {
    await harness.resync();
    runs += 1;
    if (runs === 5) await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: null } });
  });
  expect([objects(), webhooks()]).toEqual([[], 0]);
});

describe('very many objects', () => {
  /** Deletes and patches take some time; `max`: how many were under way at the same time. */
  const slow = (millis: number) => {
    let [underWay, max] = [0, 0];
    const take = async <T>(call: () => Promise<T>): Promise<T> => {
      underWay += 1;
      max = Math.max(max, underWay);
      await new Promise((resolve) => setImmediate(resolve));
      harness.clock.pass(millis);
      underWay -= 1;
      return call();
    };
    const cluster: Cluster = {
      ...harness.cluster,
      delete: (...args) => take(() => harness.cluster.delete(...args)),
      patch: (...args) => take(() => harness.cluster.patch(...args)),
    };
    return { cluster, max: () => max };
  };
  const removeFrom = (cluster: Cluster, clean: (call: number) => Promise<unknown>) => {
    let calls = 0;
    const pause = async () => {
      harness.clock.pass(10_000);
      calls += 1;
      await clean(calls);
    };
    const print = (line: string) => void output.push(line);
    return removeOperator({ cluster, print, now: harness.clock.now, pause }, 'Delete');
  };
  const released = () => output.filter((line) => line.startsWith('released')).length;

  test.each([
    ['and an operator that cleans up', () => harness.resync(), 0],
    ['and no operator', async () => undefined, 106],
  ])('%s: at most 32 calls are under way, because each must end within seconds', async (_, clean, left) => {
    for (let index = 0; index < 100; index += 1) await harness.apply(makeTeam({ teamAlias: `${index}` }, `t-${index}`));
    await harness.resync();
    const { cluster, max } = slow(0);
    await removeFrom(cluster, clean);
    expect([objects(), released()]).toEqual([[], left]);
    expect(max()).toBe(32);
  });

  test('whose deletion takes longer than an operator may make no progress: all are cleaned up', async () => {
    // The operator is slow, too: it does nothing at first.
    await removeFrom(slow(30_000).cluster, async (call) => (call % 3 === 0 ? harness.resync() : undefined));
    expect([objects(), released()]).toEqual([[], 0]);
  });
});

test('objects are read as metadata, page by page: whoever has very many objects does not prevent an uninstall', async () => {
  const reads: unknown[] = [];
  const cluster: Cluster = {
    ...harness.cluster,
    list: () => Promise.reject(new Error('a list reads all objects together')),
    listPages: (resource, selection, onPage) => {
      reads.push(selection.metadataOnly);
      return harness.cluster.listPages(resource, selection, onPage);
    },
  };
  const time = { now: harness.clock.now, pause: async () => undefined };
  await removeOperator({ cluster, print: (line) => void output.push(line), ...time }, 'Keep');
  expect(output.at(-1)).toContain('No webhook and no finalizer of the operator is left');
  expect(new Set(reads)).toEqual(new Set([true]));
});
