// Does an instance whose database is slow for ever end with its time, and does a large one converge all the same?
import { expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';

const KEYS = 100;
const SECOND = 1000;

/** Timers that end when the test lets them, by their milliseconds. */
function createTimers() {
  const timers = new Map<() => void, number>();
  const timer = (millis: number, callback: () => void) => {
    timers.set(callback, millis);
    return () => void timers.delete(callback);
  };
  const fire = (millis: number) => {
    for (const [end, of] of timers) if (of === millis) end();
  };
  return { timer, fire };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a database that never closes its instance ends with the time of its part, and keeps no deleted instance', async () => {
  const { timer, fire } = createTimers();
  const harness = createHarness({ timer });
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  await harness.resync();
  let isClosing = false;
  harness.onDatabase = async (method) => {
    if (method !== 'closeInstance') return;
    isClosing = true;
    await new Promise(() => undefined);
  };
  await harness.remove(gatewayInstances, 'main');
  const ends = async (resync: Promise<unknown>) => {
    while (!isClosing) await turn();
    isClosing = false;
    fire(40 * SECOND);
    fire(90 * SECOND);
    await resync;
  };
  await ends(harness.resync());
  expect(JSON.stringify(await harness.status(gatewayInstances, 'main'))).toContain('everything within 90 s');
  harness.clock.pass(21 * SECOND);
  await ends(harness.resync());
  expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
});

test('a deleted instance goes also where its database takes all the time to say what it has', async () => {
  const { timer, fire } = createTimers();
  const harness = createHarness({ timer });
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  await harness.resync();
  let isAsked = false;
  harness.onDatabase = async (method) => {
    if (method !== 'claims') return;
    isAsked = true;
    await new Promise(() => undefined);
  };
  await harness.remove(gatewayInstances, 'main');
  harness.clock.pass(21 * SECOND);
  const resync = harness.resync();
  while (!isAsked) await turn();
  harness.clock.pass(40 * SECOND);
  fire(40 * SECOND);
  await resync;
  expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
});

test('a store that is never flushed keeps neither the sums nor the database of its instance from being looked at', async () => {
  const { timer, fire } = createTimers();
  let isAsked = false;
  const flush = () => {
    isAsked = true;
    return new Promise<void>(() => undefined);
  };
  const harness = createHarness({ timer, flush });
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  await harness.resync();
  const resync = harness.resync();
  while (!isAsked) await turn();
  fire(15 * SECOND - 50);
  fire(50);
  await resync;
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(JSON.stringify(harness.log.lines)).toContain('the store did not answer in 15000 ms');
});

test('of slow steps a run begins so many, and the next runs the others, until all keys work', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.resync();
  await harness.apply(...Array.from({ length: KEYS }, (_, index) => makeKey({}, `key-${index}`)));
  let writes = 0;
  harness.onDatabase = (method) => {
    if (method !== 'putScope') return;
    writes += 1;
    harness.clock.pass(2 * SECOND);
  };
  const ready: number[] = [];
  while ((ready.at(-1) ?? 0) < KEYS) {
    writes = 0;
    const began = harness.clock.now();
    const { deferred, underWay } = await harness.resync();
    // Those that had begun end: their databases may take so long.
    expect(writes).toBeLessThan(26 + 32);
    const states = await Promise.all(
      Array.from({ length: KEYS }, (_, index) => harness.ready(virtualKeys, `key-${index}`)),
    );
    ready.push(states.filter((state) => state === 'True Ready').length);
    expect([deferred ?? 0, underWay ?? 0]).toEqual([KEYS - (ready.at(-1) ?? 0), KEYS - (ready.at(-1) ?? 0)]);
    expect(states.every((state) => state === 'True Ready' || state === 'nothing')).toBe(true);
    harness.clock.pass(Math.max(0, began + 60 * SECOND - harness.clock.now()));
    expect(ready.length).toBeLessThan(6);
  }
  expect(ready.length).toBeGreaterThan(1);
});

test('steps that take all the time and are never done leave a turn to every other', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.resync();
  const name = (index: number) => `key-${index}`;
  await harness.apply(...Array.from({ length: KEYS }, (_, index) => makeKey({}, name(index))));
  // What fails is what comes first: nine of ten keys.
  for (let index = 0; index < KEYS; index += 1)
    if (index % 10 !== 9) await harness.apply(makeSecret(`${name(index)}-key`, { other: 'x' }));
  harness.onDatabase = (method) => {
    if (method === 'putScope') harness.clock.pass(SECOND);
  };
  const isReady = async () => {
    const states = await Promise.all(
      Array.from({ length: KEYS / 10 }, (_, index) => harness.ready(virtualKeys, name(10 * index + 9))),
    );
    return states.every((state) => state === 'True Ready');
  };
  let resyncs = 0;
  while (!(await isReady())) {
    expect(resyncs).toBeLessThan(10);
    await harness.resync();
    harness.clock.pass(10 * SECOND);
    resyncs += 1;
  }
});
