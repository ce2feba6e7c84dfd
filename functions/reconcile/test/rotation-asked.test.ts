// A rotation that an annotation requests is done once, whatever happens meanwhile.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createRotation, HOUR, MINUTE, ROTATE } from '../../../test/reconcile/rotation.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const { published, working, editKey, ask, pass, condition } = createRotation(() => harness);

describe('the annotation that requests a rotation', () => {
  test('causes one rotation for each text, also in a new process', async () => {
    const first = await working({});
    await ask('leaked in May');
    await pass(0);
    const second = await published();
    expect(second).not.toBe(first);
    expect(await harness.works(first)).toBe(true);
    harness.restart();
    await pass(MINUTE);
    await harness.trigger('VirtualKey', 'chat');
    expect(await published()).toBe(second);
    await ask('and in June');
    await pass(0);
    expect(await published()).not.toBe(second);
  });

  test('causes an overlap of an hour if spec.rotation is absent, else that of the spec', async () => {
    const first = await working({});
    await ask('1');
    await pass(0);
    harness.clock.pass(HOUR - 1);
    expect(await harness.works(first)).toBe(true);
    harness.clock.pass(1);
    expect(await harness.works(first)).toBe(false);
    await editKey({ rotation: { every: '30d', overlap: '5m' } });
    const second = await published();
    await ask('2');
    await pass(0);
    await pass(5 * MINUTE);
    expect(await harness.works(second)).toBe(false);
  });

  test('leaves at most 16 previous values working, however often it is changed and however long they overlap', async () => {
    const first = await working({ rotation: { every: '36500d', overlap: '36000d' } });
    for (let turn = 0; turn < 20; turn += 1) {
      await ask(`${turn}`);
      await pass(MINUTE);
    }
    await pass(MINUTE);
    expect(await harness.works(first)).toBe(false);
    expect(await harness.works(await published())).toBe(true);
    const { uid = '' } = (await harness.get(gatewayInstances, 'main'))?.metadata ?? {};
    const [claim] = await harness.database().claims(uid);
    expect(claim?.values).toHaveLength(17);
  });

  test('causes no rotation of a new key, or if it is removed and added again, or if the value was created after it', async () => {
    const key = makeKey();
    await harness.apply({ ...key, metadata: { ...key.metadata, annotations: { [ROTATE]: '1' } } });
    await harness.resync();
    const first = await published();
    await pass(MINUTE);
    expect(await published()).toBe(first);
    await ask(null);
    await pass(MINUTE);
    await ask('1');
    await pass(MINUTE);
    expect(await published()).toBe(first);
    await ask('2');
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await pass(MINUTE);
    const second = await published();
    expect(second).not.toBe(first);
    await pass(MINUTE);
    expect(await published()).toBe(second);
  });

  test('that is blank requests nothing, and the status of the key reports it', async () => {
    const first = await working({});
    await ask(' ');
    await pass(0);
    expect(await published()).toBe(first);
    expect(await condition('SpecValid')).toMatchObject({ status: 'False', reason: 'InvalidAnnotation' });
    await ask(null);
    await pass(0);
    expect(await condition('SpecValid')).toBeUndefined();
  });

  test('does not cause a second rotation of a key that is restored from a backup', async () => {
    await working({ deletionPolicy: 'Retain' });
    await ask('1');
    await pass(0);
    const second = await published();
    await harness.remove(virtualKeys, 'chat');
    await pass(0);
    const key = makeKey();
    await harness.apply({ ...key, metadata: { ...key.metadata, annotations: { [ROTATE]: '1' } } });
    await pass(0);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await published()).toBe(second);
  });
});
