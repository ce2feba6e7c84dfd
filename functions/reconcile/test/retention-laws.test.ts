// A VirtualKey with deletionPolicy Retain is deleted while something cannot be read or reached: its value works, or its
// Secret exists as the proof by which the next resync makes it work again, with its spend.
import { expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { READS } from '../../../test/reconcile/databases.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { KEY_UID_ANNOTATION } from '../key/secret-shape.ts';

/** A call to the cluster (`get secrets`) or to a database (`claims`). */
type CallName = string;
/** Whether a call fails. `lost`: it happens, and its answer never arrives. */
type Fault = (name: CallName, place: number) => 'fails' | 'lost' | undefined;

/** Does `work` while calls fail, and returns the names of all its calls. */
async function withFault(harness: Harness, fault: Fault, work: () => Promise<unknown>): Promise<CallName[]> {
  const calls: CallName[] = [];
  harness.cluster.inject(({ verb, resource }) => {
    calls.push(`${verb} ${resource.plural}`);
    if (fault(calls.at(-1) ?? '', calls.length) === 'fails') throw new ClusterError('injected: 500', 500);
    return undefined;
  });
  harness.onDatabase = (method) => {
    calls.push(method);
    const fate = fault(method, calls.length);
    if (fate === 'fails') throw new DatabaseUnreachable('injected: the connection was refused');
    return fate;
  };
  // A run rejects if the API server cannot be read at all.
  await work().catch(() => undefined);
  harness.cluster.inject(() => undefined);
  harness.onDatabase = () => undefined;
  return calls;
}

interface Case {
  readonly name: string;
  readonly spec?: object;
  /** Between the first run, which creates the value, and the deletion. */
  readonly before?: (harness: Harness) => Promise<unknown>;
  /** The age of the deletion when the run begins that has the fault. */
  readonly age: number;
  readonly run: (harness: Harness) => Promise<unknown>;
}

const trigger = (harness: Harness) => harness.trigger('VirtualKey', 'chat');
const resync = (harness: Harness) => harness.resync();
const CASES: ReadonlyArray<Case> = [
  { name: 'in the trigger', age: 0, run: trigger },
  { name: 'in a resync a minute later', age: 60_000, run: resync },
  {
    name: 'in a resync a minute later, with a Secret that the template names',
    spec: { secretTemplate: { name: `chat-${'x'.repeat(80)}` } },
    age: 60_000,
    run: resync,
  },
  {
    name: 'in a resync a minute later, and became Retain directly before',
    spec: { deletionPolicy: 'Delete' },
    before: (harness) => harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } }),
    age: 60_000,
    run: resync,
  },
  {
    name: 'in a resync a minute later, with a Secret that has lost its annotation',
    before: (harness) =>
      harness.edit(RESOURCES.secrets, 'chat-key', { metadata: { annotations: { [KEY_UID_ANNOTATION]: null } } }),
    age: 60_000,
    run: resync,
  },
  {
    name: 'in a resync a minute later, and a finalizer of another program keeps it',
    before: async (harness) => {
      const finalizers = (await harness.get(virtualKeys, 'chat'))?.metadata.finalizers ?? [];
      await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [...finalizers, 'example.com/x'] } });
    },
    age: 60_000,
    run: resync,
  },
];

async function expectRetained(one: Case, fault: Fault, runs = 1): Promise<ReadonlyArray<CallName>> {
  const harness = createHarness();
  const spec = { deletionPolicy: 'Retain', ...one.spec };
  await harness.apply(...makeSecrets(), makeInstance(), makeKey(spec), makeKey({}, 'other'));
  await harness.resync();
  const secret = String((await harness.status(virtualKeys, 'chat')).keySecretRef);
  const value = await harness.value(secret);
  await harness.spend('chat', '1.25');
  await one.before?.(harness);
  await harness.remove(virtualKeys, 'chat');
  harness.clock.pass(one.age);
  const calls: CallName[] = [];
  for (let run = 0; run < runs; run += 1) calls.push(...(await withFault(harness, fault, () => one.run(harness))));
  expect({ calls, proof: await harness.value(secret) }).toEqual({ calls, proof: value });
  await harness.resync();
  harness.cluster.collectGarbage();
  expect({ calls, works: await harness.works(value) }).toEqual({ calls, works: true });
  if ((await harness.get(virtualKeys, 'chat')) !== undefined)
    await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
  await harness.apply(makeKey(spec));
  await harness.resync();
  const { currentSpend, keyValue } = await harness.status(virtualKeys, 'chat');
  const end = { calls, ready: await harness.ready(virtualKeys, 'chat'), currentSpend, keyValue };
  expect(end).toEqual({ calls, ready: 'True Ready', currentSpend: '1.25', keyValue: value });
  expect((await harness.resync()).actions).toEqual({});
  return calls;
}

test.each(CASES)('a retained key that is deleted $name survives any one call that fails', async (one) => {
  let calls = (await expectRetained(one, () => undefined)).length;
  for (let place = 1; place <= calls; place += 1)
    calls = (await expectRetained(one, (_, at) => (at === place ? 'fails' : undefined))).length;
});

test.each(CASES)('a retained key that is deleted $name survives any write whose answer is lost', async (one) => {
  const isWrite = (name: CallName) => !name.includes(' ') && !READS.includes(name);
  const names = await expectRetained(one, () => undefined);
  const places = names.flatMap((name, index) => (isWrite(name) ? [index + 1] : []));
  expect(places.length).toBeGreaterThan(0);
  for (const place of places) await expectRetained(one, (_, at) => (at === place ? 'lost' : undefined));
});

test.each(CASES)(
  'a retained key that is deleted $name survives two runs in which all calls of one kind fail',
  async (one) => {
    const names = new Set(await expectRetained(one, () => undefined));
    for (const failing of names) await expectRetained(one, (name) => (name === failing ? 'fails' : undefined), 2);
  },
);

const KUBE_SYSTEM = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };

test.each([
  ['at the same time', 'main', 0],
  ['after it', 'chat', 1],
  ['before it', 'main', 1],
] as const)(
  'a retained key that is deleted %s as its instance continues on an instance that adopts the ledger',
  async (_, first, runs) => {
    const harness = createHarness();
    await harness.apply(KUBE_SYSTEM, ...makeSecrets(), makeInstance(), makeKey({ deletionPolicy: 'Retain' }));
    await harness.resync();
    const value = await harness.value('chat-key');
    await harness.spend('chat', '3');
    const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    await harness.remove(first === 'main' ? gatewayInstances : virtualKeys, first);
    for (let run = 0; run < runs; run += 1) await harness.resync();
    await harness.remove(first === 'main' ? virtualKeys : gatewayInstances, first === 'main' ? 'chat' : 'main');
    await harness.resync();
    expect(await harness.get(virtualKeys, 'chat')).toBeUndefined();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
    expect(await harness.value('chat-key')).toBe(value);
    const { metadata, ...instance } = makeInstance();
    const annotations = { 'instance.gateway-operator.dev/adopt-ledger': uid };
    await harness.apply({ ...instance, metadata: { ...metadata, annotations } });
    await harness.resync();
    // Objects may arrive within an hour. A retained key may come back later.
    harness.clock.pass(2 * 3_600_000);
    await harness.resync();
    await harness.apply(makeKey({ deletionPolicy: 'Retain' }));
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, currentSpend: '3' });
    expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeDefined();
    expect(await harness.works(value)).toBe(true);
  },
);
