// An instance that was deleted while its ledger could not be closed is closed later.
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

const ADOPT = 'instance.gateway-operator.dev/adopt-ledger';
const MINUTE = 60_000;

let harness: Harness;
let value: string;
let old: string;

const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
const pass = (millis: number) => {
  harness.clock.pass(millis);
  return harness.resync();
};
const successor = (ledger: string) => {
  const instance = makeInstance();
  return { ...instance, metadata: { ...instance.metadata, annotations: { [ADOPT]: ledger } } };
};

beforeEach(async () => {
  harness = createHarness();
  await harness.apply(
    namespace('kube-system'),
    ...makeSecrets(),
    makeInstance(),
    makeInstance({}, 'second'),
    makeKey(),
  );
  await harness.resync();
  value = (await harness.value('chat-key')) ?? '';
  old = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  harness.refuse(true);
  await harness.remove(gatewayInstances, 'main');
  await harness.resync();
  await pass(30_000);
  expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
  harness.refuse(false);
});

describe('an instance that was deleted while its database could not be reached', () => {
  const live = async () => {
    const hash = sha256(value);
    const answers = await harness.database().policies(old).find([hash]);
    return answers.get(hash) !== undefined;
  };

  test('is closed by the next resync of another instance on the same database, and its keys with it', async () => {
    expect(await live()).toBe(true);
    expect(await harness.dryRun()).toContainEqual(expect.objectContaining({ action: 'CloseOrphan' }));
    expect((await pass(MINUTE)).actions).toMatchObject({ CloseOrphan: 1 });
    expect(await live()).toBe(false);
    expect((await pass(MINUTE)).actions).toEqual({});
  });

  test('is not closed if it belongs to another cluster that shares the database', async () => {
    await harness.database().openInstance({ uid: 'theirs', namespace: 'default', name: 'theirs', cluster: 'another' });
    await pass(MINUTE);
    expect(await harness.database().openInstances('another')).toHaveLength(1);
  });

  test('and was the only one is closed by the instance whose annotation names it', async () => {
    await harness.remove(gatewayInstances, 'second');
    await pass(MINUTE);
    harness.restart();
    await harness.apply(successor(old));
    await pass(MINUTE);
    await pass(MINUTE);
    expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, isActive: true });
  });

  test('can be continued by a new instance after that resync', async () => {
    await pass(MINUTE);
    await harness.apply(successor(old));
    await pass(MINUTE);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, isActive: true });
  });
});
