// Triggers of one tenant while the instances of others are slow. The test moves the clock.
import { expect, test } from 'vitest';
import { createManualTime } from '../../../test/doubles/time.ts';
import { createHarness, START } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

const SECOND = 1000;
/** Milliseconds that the Secret of a slow instance takes to be read. */
const SLOW = 50 * SECOND;
const NAMESPACES = ['slow-0', 'slow-1', 'slow-2', 'slow-3', 'slow-4'];
const INSTANCES = ['i0', 'i1', 'i2', 'i3', 'i4', 'i5', 'i6', 'i7'];

/** A quick instance with its key, which was observed before, and 40 slow ones, whose triggers come without pause. */
async function startScenario(wereQuick: boolean, namespaces = NAMESPACES) {
  const time = createManualTime(START);
  const harness = createHarness({ timer: time.timer });
  const slow = namespaces.flatMap((namespace) => INSTANCES.map((name) => makeInstance({}, name, namespace)));
  await harness.apply(...makeSecrets(), makeInstance(), makeKey(), ...slow);
  await harness.trigger('VirtualKey', 'chat');
  if (wereQuick) await harness.resync();
  harness.cluster.inject(async ({ verb, resource, namespace = '' }) => {
    if (verb === 'get' && resource.kind === 'Secret' && NAMESPACES.includes(namespace))
      await new Promise<void>((resolve) => void time.timer(SLOW, resolve));
    return undefined;
  });
  let isOver = false;
  let answered = 0;
  const repeat = async (namespace: string, name: string) => {
    while (!isOver) {
      await harness.trigger('GatewayInstance', name, namespace);
      answered += 1;
    }
  };
  const triggers = slow.map(({ metadata: { namespace = '', name } }) => repeat(namespace, name));
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      harness.clock.pass(SECOND);
      await time.advance(SECOND);
    }
  };
  const end = async () => {
    isOver = true;
    while (time.armed() > 0) await pass(1);
    await Promise.all(triggers);
  };
  /** Resolves to how long the trigger takes. */
  const timeOf = async (trigger: Promise<unknown>) => {
    const from = harness.clock.now();
    let isAnswered = false;
    const answer = trigger.then(() => {
      isAnswered = true;
    });
    // One turn of the event loop for each step of a run.
    for (let turn = 0; turn < 100 && !isAnswered; turn += 1) await new Promise(setImmediate);
    while (!isAnswered) await pass(1);
    await answer;
    return harness.clock.now() - from;
  };
  return { harness, pass, end, timeOf, answered: () => answered };
}

test.each([
  ['new', false],
  ['quick before', true],
])(
  'a trigger of a quick instance waits less than 2 s while 40 slow instances of 5 namespaces, which were %s, have constant triggers',
  async (_, wereQuick) => {
    const { harness, pass, end, timeOf, answered } = await startScenario(wereQuick);
    const waits: number[] = [];
    for (let edit = 0; edit < 20; edit += 1) {
      waits.push(await timeOf(harness.trigger('VirtualKey', 'chat')));
      await pass(10);
    }
    expect(Math.max(...waits)).toBeLessThan(2 * SECOND);
    // The slow slots were used more than once.
    expect(answered()).toBeGreaterThan(16);
    await end();
  },
);

test('a trigger of a new instance waits less than 2 s while 32 slow instances of 4 namespaces have constant triggers', async () => {
  const { harness, pass, end, timeOf } = await startScenario(false, NAMESPACES.slice(0, 4));
  await pass(5);
  await harness.apply(makeInstance({}, 'new', 'other'));
  expect(await timeOf(harness.trigger('GatewayInstance', 'new', 'other'))).toBeLessThan(2 * SECOND);
  await end();
});
