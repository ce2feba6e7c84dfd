// Does admission's trigger reach reconcile soon, and again only while there is something to wait for?
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createTrigger } from '../trigger.ts';

const TRIGGER = { apiVersion: 'a/v1', kind: 'VirtualKey', namespace: 'default', name: 'chat' };
let sent: Array<{ readonly at: number; readonly event: Request }>;
let answers: Response[];
beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
});
afterEach(() => {
  vi.useRealTimers();
});
const create = () => {
  const started = Date.now();
  const send = async (event: Request) => {
    sent.push({ at: Date.now() - started, event });
    return answers.shift() ?? new Response('{}');
  };
  return createTrigger({ address: 'http://reconcile/', token: 'the-token-of-tests', send });
};
const tell = async () => {
  const trigger = create();
  const outcome = trigger(TRIGGER).then(
    () => 'told',
    (error: Error) => error.message,
  );
  await vi.runAllTimersAsync();
  return outcome;
};
const report = (more: object) => new Response(JSON.stringify({ observed: {}, actions: {}, failed: {}, ...more }));
const ACTED = { actions: { PutSecret: 1 } };

test('reconcile is asked to look well within a second, and once where it did all there was to do', async () => {
  answers = [report(ACTED)];
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250]);
  expect(await sent[0]?.event.json()).toEqual(TRIGGER);
  expect(sent[0]?.event.headers.get('ce-type')).toBe('dev.gateway-operator.trigger');
  expect(sent[0]?.event.headers.get('authorization')).toBe('Bearer the-token-of-tests');
});

test('where there was nothing to do an edit may not have been stored yet: the trigger is repeated once', async () => {
  answers = [report({}), report({})];
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250, 2250]);
});

test('while something is under way the trigger is repeated after 2, 5, 10 and 20 s, and then the schedule continues', async () => {
  answers = [1, 2, 3, 4, 5].map((underWay) => report({ ...ACTED, underWay }));
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250, 2250, 5250, 10_250, 20_250]);
});

test('a gateway that is ready at the third look is not asked about again', async () => {
  answers = [report({ ...ACTED, underWay: 1 }), report({ underWay: 1 }), report({}), report({})];
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250, 2250, 5250]);
});

test('an object that is not there at the second look is awaited no longer, unless something else is under way', async () => {
  const notFound = { underWay: 1, notFound: true };
  answers = [1, 2, 3, 4, 5].map(() => report(notFound));
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250, 2250]);
  sent = [];
  answers = [report(notFound), report({ ...notFound, underWay: 2 }), report({ underWay: 1 }), report({})];
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250, 2250, 5250, 10_250]);
});

test('an answer that is no report is looked behind once more, and a refusal is told', async () => {
  answers = [new Response('<html>'), new Response('no', { status: 503 })];
  expect(await tell()).toBe('reconcile answered 503: no');
});

test('an object that is written again and again is looked at once a write; only its last write is looked at again', async () => {
  answers = Array.from({ length: 20 }, () => report({ ...ACTED, underWay: 1 }));
  const trigger = create();
  const other = trigger({ ...TRIGGER, name: 'other' });
  const outcome = [];
  for (let write = 0; write < 4; write += 1) {
    outcome.push(trigger(TRIGGER));
    await vi.advanceTimersByTimeAsync(1000);
  }
  await vi.runAllTimersAsync();
  await Promise.all([other, ...outcome]);
  const events = await Promise.all(
    sent.map(async ({ at, event }) => ({ at, name: ((await event.json()) as typeof TRIGGER).name })),
  );
  const timesOf = (name: string) => events.filter((event) => event.name === name).map(({ at }) => at);
  expect(timesOf('chat')).toEqual([250, 1250, 2250, 3250, 5250, 8250, 13_250, 23_250]);
  expect(timesOf('other')).toEqual([250, 2250, 5250, 10_250, 20_250]);
});

test('an object that is written all the time has one request under way, and one after it', async () => {
  const { promise: pending, resolve } = Promise.withResolvers<Response>();
  let asked = 0;
  const trigger = createTrigger({
    address: 'http://reconcile/',
    send: () => (++asked === 1 ? pending : Promise.resolve(report(ACTED))),
  });
  const first = trigger(TRIGGER);
  for (let write = 0; write < 100; write += 1) {
    await vi.advanceTimersByTimeAsync(25);
    await trigger(TRIGGER);
  }
  expect(asked).toBe(1);
  resolve(report(ACTED));
  await vi.runAllTimersAsync();
  await first;
  expect(asked).toBe(2);
});

test('of a namespace whose triggers reconcile is slow to answer few requests are open; those of others are sent', async () => {
  const pending = new Promise<Response>(() => {});
  const asked: string[] = [];
  const send = async (event: Request) => {
    const { namespace } = (await event.json()) as typeof TRIGGER;
    asked.push(namespace);
    return namespace === 'greedy' ? pending : report(ACTED);
  };
  const trigger = createTrigger({ address: 'http://reconcile/', send });
  const lost: string[] = [];
  for (let object = 0; object < 600; object += 1)
    void trigger({ ...TRIGGER, namespace: 'greedy', name: `chat-${object}` }).catch((error) =>
      lost.push(error.message),
    );
  const other = trigger(TRIGGER);
  await vi.advanceTimersByTimeAsync(250);
  await other;
  expect([asked.length, asked.at(-1)]).toEqual([9, 'default']);
  expect([lost.length, lost[0]]).toEqual([100, 'too many objects have triggers: the next resync looks at this one']);
});

test.each([
  [5, 8],
  [20, 50],
])(
  'while %i namespaces have %i slow objects each that are written without pause, the trigger of another is sent within 2 s',
  async (namespaces, objects) => {
    let [open, maxOpen] = [0, 0];
    const waits: number[] = [];
    let written = 0;
    const send = async (event: Request) => {
      const { namespace } = (await event.json()) as typeof TRIGGER;
      if (namespace === 'default') {
        waits.push(Date.now() - written);
        return report(ACTED);
      }
      maxOpen = Math.max(maxOpen, ++open);
      await new Promise((resolve) => setTimeout(resolve, 30_000));
      open -= 1;
      throw new Error('the answer did not come in time');
    };
    const trigger = createTrigger({ address: 'http://reconcile/', send });
    let isOver = false;
    const repeat = async (namespace: string, name: string) => {
      while (!isOver) await trigger({ ...TRIGGER, namespace, name }).catch(() => undefined);
    };
    for (let namespace = 0; namespace < namespaces; namespace += 1)
      for (let object = 0; object < objects; object += 1) void repeat(`slow-${namespace}`, `chat-${object}`);
    for (let write = 0; write < 30; write += 1) {
      await vi.advanceTimersByTimeAsync(7_000);
      written = Date.now();
      void trigger(TRIGGER);
      await vi.advanceTimersByTimeAsync(3_000);
    }
    expect(waits).toHaveLength(30);
    expect(Math.max(...waits)).toBeLessThan(2_000);
    // Each namespace has a share of the quick slots until its first answer is slow.
    expect(maxOpen).toBeLessThanOrEqual(32 + 24 + 8 * namespaces);
    isOver = true;
  },
);

const TOO_MANY = 'too many objects have triggers: the next resync looks at this one';

test('four namespaces that take all slots give some to others, until all have as many', async () => {
  const lost: string[] = [];
  const answered = new Map<string, number>();
  const send = async (event: Request) => {
    const { namespace } = (await event.json()) as typeof TRIGGER;
    answered.set(namespace, (answered.get(namespace) ?? 0) + 1);
    return report({ underWay: 1 });
  };
  const trigger = createTrigger({ address: 'http://reconcile/', send });
  const write = (namespace: string, count: number) => {
    for (let object = 0; object < count; object += 1)
      void trigger({ ...TRIGGER, namespace, name: `${object}` }).catch(({ message }) => {
        expect(message).toBe(TOO_MANY);
        lost.push(namespace);
      });
  };
  const lostOf = (namespace: string) => lost.filter((one) => one === namespace).length;
  for (let namespace = 0; namespace < 4; namespace += 1) write(`greedy-${namespace}`, 500);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(lost).toEqual([]);
  answered.clear();
  write('default', 1);
  await vi.advanceTimersByTimeAsync(250);
  expect(answered).toEqual(new Map([['default', 1]]));
  expect(lost).toHaveLength(1);
  write('other', 600);
  await vi.advanceTimersByTimeAsync(0);
  // Of 2000 slots `default` has one, each of the four 400, and `other` 399.
  expect(lostOf('other')).toBe(201);
  expect([0, 1, 2, 3].map((namespace) => lostOf(`greedy-${namespace}`))).toEqual([100, 100, 100, 100]);
});

test('a trigger that lost its slot while it waited for a request is not sent', async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>();
  const asked: string[] = [];
  const send = async (event: Request) => {
    const { namespace, name } = (await event.json()) as typeof TRIGGER;
    asked.push(`${namespace}/${name}`);
    await go;
    return report(ACTED);
  };
  const trigger = createTrigger({ address: 'http://reconcile/', send });
  const outcomes: Array<Promise<void>> = [];
  const lost: string[] = [];
  for (let object = 0; object < 2000; object += 1) {
    const [namespace, name] = [`greedy-${object % 4}`, `${object}`];
    outcomes.push(trigger({ ...TRIGGER, namespace, name }).catch(() => void lost.push(`${namespace}/${name}`)));
  }
  await vi.advanceTimersByTimeAsync(250);
  expect(asked).toHaveLength(32);
  for (let object = 0; object < 100; object += 1) outcomes.push(trigger({ ...TRIGGER, name: `${object}` }));
  await vi.advanceTimersByTimeAsync(0);
  resolve();
  await vi.runAllTimersAsync();
  await Promise.all(outcomes);
  expect(asked).toContain('default/99');
  expect(asked.filter((path) => lost.includes(path))).toEqual([]);
  // Of the 100 that lost their slots, 32 were sent before.
  expect([lost.length, asked.length]).toEqual([68, 2032]);
});

test('reconcile has half a minute for an answer', async () => {
  vi.useRealTimers();
  const timeout = vi.spyOn(AbortSignal, 'timeout');
  answers = [report(ACTED)];
  await create()(TRIGGER);
  expect(timeout.mock.calls).toEqual([[30_000]]);
  expect(sent[0]?.event.signal.aborted).toBe(false);
});
