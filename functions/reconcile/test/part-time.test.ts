// The time of a part: an instance with a slow database ends with its time, and a large instance still converges.
import { expect, test } from 'vitest';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

const KEYS = 100;
const SECOND = 1000;

/** Timers that the test ends, by their milliseconds. */
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

test('a part whose database never closes the instance ends with its time, and the deleted instance is released', async () => {
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

test('a deleted instance is released also if reading its database takes all the time', async () => {
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

test('if a store is never flushed, the database and the sums of its instance are still read', async () => {
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

test.each([
  { what: 'keys work', kind: virtualKeys, make: makeKey },
  { what: 'Teams are in force', kind: teams, make: makeTeam },
])(
  'a run begins as many slow steps as its time allows, and the next runs the others, until all $what',
  async ({ kind, make }) => {
    const harness = createHarness();
    await harness.apply(...makeSecrets(), makeInstance());
    await harness.resync();
    await harness.apply(...Array.from({ length: KEYS }, (_, index) => make({}, `one-${index}`)));
    let writes = 0;
    // Writes of scopes share transactions; these steps do not.
    harness.cluster.inject(({ verb, body }) => {
      if (verb !== 'patch' || !JSON.stringify(body).includes('finalizers')) return undefined;
      writes += 1;
      harness.clock.pass(2 * SECOND);
      return undefined;
    });
    const ready: number[] = [];
    while ((ready.at(-1) ?? 0) < KEYS) {
      writes = 0;
      const began = harness.clock.now();
      const { deferredKeys, underWay } = await harness.resync();
      // Steps that have begun end: their databases may take that long.
      expect(writes).toBeLessThan(26 + 32);
      const states = await Promise.all(Array.from({ length: KEYS }, (_, index) => harness.ready(kind, `one-${index}`)));
      ready.push(states.filter((state) => state === 'True Ready').length);
      const left = KEYS - (ready.at(-1) ?? 0);
      expect([deferredKeys ?? 0, underWay ?? 0]).toEqual([kind === virtualKeys ? left : 0, left]);
      expect(states.every((state) => state === 'True Ready' || state === 'nothing')).toBe(true);
      harness.clock.pass(Math.max(0, began + 60 * SECOND - harness.clock.now()));
      expect(ready.length).toBeLessThan(6);
    }
    expect(ready.length).toBeGreaterThan(1);
  },
);

test('steps that take all the time and never succeed do not keep other steps from their turn', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.resync();
  const name = (index: number) => `key-${index}`;
  await harness.apply(...Array.from({ length: KEYS }, (_, index) => makeKey({}, name(index))));
  // The failing steps come first: nine of ten keys.
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

test('no status shows a policy that a run had no time to write: of keys, Users, Teams and keys that are charged to them', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeTeam({ blocked: true }), makeUser(), makeKey());
  await harness.apply(makeKey({ teamRef: { name: 'research' } }, 'charged'));
  await harness.resync();
  const shown = async () => {
    const names = [
      [teams, 'research'],
      [users, 'alice'],
      [virtualKeys, 'alice'],
      [virtualKeys, 'chat'],
      [virtualKeys, 'charged'],
    ] as const;
    return Promise.all(names.map(async ([kind, name]) => [name, await harness.status(kind, name)]));
  };
  const before = await shown();
  const { keys } = await harness.status(gatewayInstances, 'main');
  await harness.edit(teams, 'research', { spec: { blocked: false } });
  await harness.edit(users, 'alice', { spec: { maxBudget: '0' } });
  await harness.edit(virtualKeys, 'chat', { spec: { blocked: true } });
  harness.onDatabase = (method) => void (method === 'claims' && harness.clock.pass(51 * SECOND));
  const late = await harness.resync();
  expect(await shown()).toEqual(before);
  expect((await harness.status(gatewayInstances, 'main')).keys).toEqual(keys);
  expect(late).toMatchObject({ deferredKeys: 3, underWay: 3 });
  harness.onDatabase = () => undefined;
  expect(await harness.resync()).not.toHaveProperty('underWay');
  expect(await harness.ready(virtualKeys, 'charged')).toBe('True Ready');
  expect(await harness.ready(users, 'alice')).toBe('False BudgetExceeded');
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False Blocked');
});
