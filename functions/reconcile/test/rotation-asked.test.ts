// Is a rotation that an annotation asks for done once, whatever happens meanwhile?
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

describe('the annotation that asks for a rotation', () => {
  test('is acted on once for each text, also by a process that knows nothing of the previous one', async () => {
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

  test('gives an hour of overlap where spec.rotation is absent, else the one that is written', async () => {
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

  test('leaves at most 16 previous values at work, however often it is changed and long they overlap', async () => {
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

  test('is not acted on when the key is new, when it was taken away and put back, or when a mint came since', async () => {
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

  test('that is blank asks for nothing, and the key says so', async () => {
    const first = await working({});
    await ask(' ');
    await pass(0);
    expect(await published()).toBe(first);
    expect(await condition('SpecValid')).toMatchObject({ status: 'False', reason: 'InvalidAnnotation' });
    await ask(null);
    await pass(0);
    expect(await condition('SpecValid')).toBeUndefined();
  });

  test('moves on with a key whose object is restored from a backup: it is not acted on twice', async () => {
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
