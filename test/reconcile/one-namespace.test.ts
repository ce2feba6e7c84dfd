// A resync with rights in one namespace only: no call leaves it.
import { expect, test } from 'vitest';
import { withinNamespace } from '#adapters/kubernetes/one-namespace.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { removeOperator } from '../../infra/platforms/kubernetes/remove-operator.ts';
import { createHarness } from './harness.ts';
import { makeInstance, makeKey, makeSecrets } from './objects.ts';

test('an operator of one namespace asks for nothing outside it, and serves what is inside as ever', async () => {
  let isWatching = false;
  const harness = createHarness({ through: (memory) => withinNamespace(memory, 'default') });
  harness.cluster.inject(({ verb, resource, namespace, name }) => {
    // Discovery and reviews of rights belong to no namespace.
    if (
      isWatching &&
      resource.plural !== undefined &&
      namespace !== 'default' &&
      (name !== undefined || verb === 'list')
    )
      throw new Error(`403: ${verb} ${resource.plural} in ${namespace ?? 'the whole cluster'}`);
    return undefined;
  });
  const elsewhere = { connectionRef: { instanceRef: { name: 'main', namespace: 'other' } } };
  const makeOther = () => makeInstance({}, 'main', 'other');
  await harness.apply(...makeSecrets(), makeInstance(), makeOther(), makeKey(), makeKey(elsewhere, 'lost'));
  isWatching = true;
  const report = await harness.resync();
  expect(report).toMatchObject({ observed: { GatewayInstance: 1, VirtualKey: 2 }, failed: {} });
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  expect(await harness.ready(virtualKeys, 'lost')).toBe('False InstanceNotFound');
  await harness.trigger('VirtualKey', 'lost');
  await harness.trigger('GatewayInstance', 'main', 'other');
  expect(harness.log.lines.filter(({ level }) => level !== 'info')).toEqual([]);

  const printed: string[] = [];
  const time = { now: () => 0, pause: async () => undefined };
  const cluster = withinNamespace(harness.cluster, 'default');
  await removeOperator({ cluster, print: (line) => void printed.push(line), ...time }, 'Keep');
  expect(printed.at(-1)).toContain('No webhook and no finalizer of the operator is left');
  isWatching = false;
  const finalizers = async (namespace: string) =>
    (await harness.get(gatewayInstances, 'main', namespace))?.metadata.finalizers ?? [];
  expect(await finalizers('default')).toEqual([]);
});

/** An operator of the whole cluster, until `restrict`. */
function createRestrictable(namespace: string) {
  let isRestricted = false;
  const harness = createHarness({
    through: (memory) => {
      const one = withinNamespace(memory, namespace);
      const read = (whole: Cluster, name: string | symbol) => Reflect.get(isRestricted ? one : whole, name);
      return new Proxy<Cluster>(memory, { get: read });
    },
  });
  const restrict = (now = true) => {
    isRestricted = now;
    harness.restart();
  };
  return { harness, restrict };
}

test('an operator that served the whole cluster, and is restricted to one namespace, ends no key elsewhere', async () => {
  const { harness, restrict } = createRestrictable('default');
  await harness.apply(...makeSecrets(), makeInstance(), makeKey(), makeKey({}, 'elsewhere', 'tenant'));
  await harness.resync();
  const value = (await harness.value('elsewhere-key', 'tenant')) ?? '';
  restrict();
  await harness.apply(makeKey({ keyAlias: 'elsewhere' }, 'same'));
  await harness.resync();
  expect(await harness.works(value)).toBe(true);
  expect(await harness.ready(virtualKeys, 'same')).toBe('False AliasTaken');
  restrict(false);
  await harness.resync();
  expect(await harness.works(value)).toBe(true);
});

test('the same if the instance selects namespaces by labels, which an operator of one namespace reads of its own only', async () => {
  let isNarrow = false;
  const harness = createHarness({
    through: (memory) => {
      const narrow = withinNamespace(memory, 'default');
      const reads = new Set<unknown>(['get', 'list', 'listPages', 'onlyNamespace']);
      return new Proxy(memory, {
        get: (whole, name) => Reflect.get(isNarrow && reads.has(name) ? narrow : whole, name) as unknown,
      });
    },
  });
  await harness.apply(
    ...['team', 'default'].map((name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: { llm: 'allowed' } },
    })),
    ...makeSecrets(),
    makeInstance(),
  );
  const selector = { matchLabels: { llm: 'allowed' } };
  const allowedNamespaces = { from: 'Selector', selector };
  await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces } });
  await harness.apply(makeKey({ keyAlias: 'chat' }, 'chat', 'team'), makeKey({ keyAlias: 'own' }, 'own'));
  await harness.resync();
  await harness.spend('chat', '1.25');
  const value = await harness.value('chat-key', 'team');
  const own = await harness.value('own-key');
  expect(await harness.works(value)).toBe(true);
  for (const narrow of [true, false]) {
    isNarrow = narrow;
    harness.restart();
    for (let run = 0; run < 2; run += 1) {
      await harness.resync();
      harness.clock.pass(60_000);
      expect(await harness.works(value)).toBe(true);
      expect(await harness.works(own)).toBe(true);
      expect(await harness.ready(virtualKeys, 'own')).toBe('True Ready');
    }
  }
  expect(await harness.status(virtualKeys, 'chat', 'team')).toMatchObject({ currentSpend: '1.25' });
});

test('an operator of the one namespace kube-system, which identifies the cluster, closes no instance elsewhere on the same database', async () => {
  const { harness, restrict } = createRestrictable('kube-system');
  await harness.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } });
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  const inside = makeSecrets().map((secret) => ({
    ...secret,
    metadata: { ...secret.metadata, namespace: 'kube-system' },
  }));
  await harness.apply(...inside, makeInstance({}, 'system', 'kube-system'));
  await harness.resync();
  const value = (await harness.value('chat-key')) ?? '';
  expect(await harness.works(value)).toBe(true);
  restrict();
  expect((await harness.resync()).actions).not.toHaveProperty('CloseOrphan');
  expect(await harness.ready(gatewayInstances, 'system', 'kube-system')).toBe('True Ready');
  restrict(false);
  expect(await harness.works(value)).toBe(true);
});
