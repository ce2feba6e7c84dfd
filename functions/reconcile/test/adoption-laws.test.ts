// Two runs about one key: a resync that is stopped before any of its calls, and a run that meanwhile retains or adopts
// the key. The slower run never undoes what the faster one wrote.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

/** Calls `meanwhile` once, before the call `place` of a resync to the cluster or to a database. */
async function interrupt(harness: Harness, place: number, meanwhile: () => Promise<void>): Promise<{ calls: number }> {
  let [calls, isOver] = [0, false];
  const onCall = async (): Promise<undefined> => {
    if (isOver) return;
    calls += 1;
    if (calls <= place) return;
    isOver = true;
    await meanwhile();
  };
  harness.cluster.inject(onCall);
  harness.onDatabase = onCall;
  await harness.resync();
  harness.cluster.inject(() => undefined);
  harness.onDatabase = () => undefined;
  return { calls };
}

async function prepare(): Promise<{ harness: Harness; value: string }> {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({ deletionPolicy: 'Retain' }));
  await harness.resync();
  await harness.spend('chat', '1.25');
  return { harness, value: (await harness.value('chat-key')) ?? '' };
}

const remove = async (harness: Harness) => {
  await harness.remove(virtualKeys, 'chat');
  await harness.trigger('VirtualKey', 'chat');
};

const adopt = async (harness: Harness, namespace = 'default') => {
  await harness.apply(makeKey({ keyAlias: 'chat' }, 'chat', namespace));
  await harness.trigger('VirtualKey', 'chat', namespace);
};

const move = async (harness: Harness) => {
  const { metadata, ...secret } = (await harness.get(RESOURCES.secrets, 'chat-key')) ?? {};
  const { name = '', labels = {}, annotations = {} } = metadata ?? {};
  await harness.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    ...secret,
    metadata: { name, namespace: 'team', labels, annotations },
  });
  await adopt(harness, 'team');
  await harness.remove(RESOURCES.secrets, 'chat-key');
};

/** `before`: what happens before the resync; `meanwhile`: while it is stopped; `namespace`: where the key is then. */
const CASES: ReadonlyArray<{
  readonly name: string;
  readonly namespace?: string;
  readonly before?: (harness: Harness) => Promise<void>;
  readonly meanwhile: (harness: Harness) => Promise<void>;
}> = [
  { name: 'retains it', meanwhile: remove },
  { name: 'adopts it in its namespace', namespace: 'default', before: remove, meanwhile: adopt },
  { name: 'adopts it in another namespace', namespace: 'team', before: remove, meanwhile: move },
  {
    name: 'retains and adopts it',
    namespace: 'default',
    meanwhile: async (harness) => {
      await remove(harness);
      await adopt(harness);
    },
  },
];

test.each(CASES)('a resync that is stopped anywhere while another run $name does not end the key', async (one) => {
  for (let place = 0, isReached = true; isReached; place += 1) {
    const { harness, value } = await prepare();
    await one.before?.(harness);
    harness.clock.pass(60_000);
    const { calls } = await interrupt(harness, place, () => one.meanwhile(harness));
    isReached = calls > place;
    for (let run = 0; run < 3 && isReached; run += 1) {
      expect(await harness.works(value), `stopped before call ${place}, ${run} resyncs later`).toBe(true);
      await harness.resync();
    }
    if (!isReached || one.namespace === undefined) continue;
    const { currentSpend } = await harness.status(virtualKeys, 'chat', one.namespace);
    expect({ place, currentSpend, ready: await harness.ready(virtualKeys, 'chat', one.namespace) }).toEqual({
      place,
      currentSpend: '1.25',
      ready: 'True Ready',
    });
  }
});

test('a resync that is stopped anywhere while a key is created and retained does not end the key', async () => {
  for (let place = 0, isReached = true; isReached; place += 1) {
    const harness = createHarness();
    await harness.apply(...makeSecrets(), makeInstance(), makeKey({}, 'other'));
    await harness.resync();
    harness.clock.pass(60_000);
    let value = '';
    // Created before the claims are read, so after the objects are listed; retained after that.
    let calls = 0;
    const steps = [
      async () => {
        await harness.apply(makeKey({ deletionPolicy: 'Retain' }));
        await harness.trigger('VirtualKey', 'chat');
        value = (await harness.value('chat-key')) ?? '';
      },
      () => remove(harness),
    ];
    let isBusy = false;
    const next = async () => {
      isBusy = true;
      await steps.shift()?.();
      isBusy = false;
    };
    const onCall = async (method?: string): Promise<undefined> => {
      if (isBusy || steps.length === 0) return;
      if (steps.length === 2) {
        if (method === 'claims') await next();
        return;
      }
      calls += 1;
      if (calls > place) await next();
    };
    harness.onDatabase = onCall;
    harness.cluster.inject(() => onCall());
    await harness.resync();
    harness.onDatabase = () => undefined;
    harness.cluster.inject(() => undefined);
    isReached = calls > place;
    if (!isReached) continue;
    expect(await harness.works(value), `stopped before call ${place}`).toBe(true);
    await harness.resync();
    expect(await harness.works(value)).toBe(true);
  }
});
