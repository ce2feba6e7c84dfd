// Is a key's value replaced in time, and never a moment too early for those who have it?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed, sha256 } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets, makeUser } from '../../test/reconcile/objects.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ROTATE = 'auth.gateway-operator.dev/rotate';
const HOURLY = { rotation: { every: '1h', overlap: '10m' } };

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
});

const published = async () => (await bed.value('chat-key')) ?? '';
const working = async (spec: object = HOURLY) => {
  await bed.apply(makeKey(spec));
  expect((await bed.sweep()).failed).toEqual({});
  return published();
};
const editKey = (spec: object) => bed.edit(virtualKeys, 'chat', { spec });
const ask = (text: string | null) => bed.edit(virtualKeys, 'chat', { metadata: { annotations: { [ROTATE]: text } } });
const pass = async (millis: number) => {
  bed.clock.pass(millis);
  return bed.sweep();
};
const rotation = async () => {
  const { conditions } = await bed.status(virtualKeys, 'chat');
  return conditions?.find(({ type }) => type === 'Rotation');
};
const messages = () => bed.cluster.objects(RESOURCES.events).map(({ reason, message }) => `${reason}: ${message}`);

describe('a key that rotates', () => {
  test('has a new value in its Secret when the old one is as old as `every`, and not before', async () => {
    const first = await working();
    await pass(HOUR - 1000);
    expect(await published()).toBe(first);
    await pass(1000);
    const second = await published();
    expect(second).not.toBe(first);
    expect(await bed.works(second)).toBe(true);
    expect(await bed.status(virtualKeys, 'chat')).toMatchObject({
      keyID: sha256(second),
      keyValue: second,
      keySecretRef: 'chat-key',
      isActive: true,
    });
  });

  test('works with both values until the overlap is over, which needs no run', async () => {
    const first = await working();
    await pass(HOUR);
    bed.clock.pass(10 * MINUTE - 1);
    expect(await bed.works(first)).toBe(true);
    bed.clock.pass(1);
    expect(await bed.works(first)).toBe(false);
    expect(await bed.works(await published())).toBe(true);
    expect((await bed.sweep()).actions).toMatchObject({ RetireValues: 1 });
    expect((await bed.sweep()).actions).toEqual({});
  });

  test('spends from the same budget in the same window, and lives no longer', async () => {
    await working({ ...HOURLY, duration: '2h' });
    await bed.spend('chat', '1.5');
    const before = await bed.status(virtualKeys, 'chat');
    await pass(HOUR);
    const { currentSpend, budgetResetDate, expiryDate } = await bed.status(virtualKeys, 'chat');
    expect({ currentSpend, budgetResetDate, expiryDate }).toEqual({
      currentSpend: '1.5',
      budgetResetDate: before.budgetResetDate,
      expiryDate: before.expiryDate,
    });
  });

  test('tells the story: when the next value comes, until when the one before works', async () => {
    await working();
    expect(await rotation()).toMatchObject({
      status: 'True',
      reason: 'Scheduled',
      message: 'the key is from 2026-11-21T12:00:00Z; the next comes at 2026-11-21T13:00:00Z',
    });
    await pass(HOUR);
    expect(await rotation()).toMatchObject({
      reason: 'Overlap',
      message:
        'the key is from 2026-11-21T13:00:00Z; the one before works until 2026-11-21T13:10:00Z; the next comes at 2026-11-21T14:00:00Z',
    });
    expect(bed.events('chat')).toEqual(['KeyCreated', 'Ready', 'KeyRotated']);
    expect(messages()).toContain(
      'KeyRotated: a new key is in Secret "chat-key": the one before works until 2026-11-21T13:10:00Z',
    );
    await pass(10 * MINUTE);
    expect(await rotation()).toMatchObject({ reason: 'Scheduled' });
  });

  test('rotates once however late the run is, and on from there', async () => {
    await working();
    await pass(5 * HOUR + 30 * MINUTE);
    const second = await published();
    await pass(59 * MINUTE);
    expect(await published()).toBe(second);
    await pass(MINUTE);
    expect(await published()).not.toBe(second);
  });

  test('has all entries of its Secret with the new value', async () => {
    await working({ ...HOURLY, secretTemplate: { entry: 'token', entries: { OPENAI_API_KEY: `\${key}` } } });
    await pass(HOUR);
    const { data } = (await bed.get(RESOURCES.secrets, 'chat-key')) as unknown as { data: Record<string, string> };
    expect(new Set(Object.values(data)).size).toBe(1);
    expect(await bed.works(await published())).toBe(true);
  });

  test('shows its new value redacted where the instance says so, and another keyID', async () => {
    await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    await working();
    await pass(HOUR);
    const value = await published();
    expect(await bed.status(virtualKeys, 'chat')).toMatchObject({
      keyID: sha256(value),
      keyValue: `sk-...${value.slice(-4)}`,
    });
    expect((await pass(1000)).actions).toEqual({});
  });

  test('is one of many thousand of which a sweep reads few Secrets, and still rotates in time', async () => {
    await bed.apply(...Array.from({ length: 510 }, (_, index) => makeKey({}, `k${index}`)));
    const first = await working();
    await pass(HOUR);
    expect(await published()).not.toBe(first);
    await pass(10 * MINUTE);
    expect(await rotation()).toMatchObject({ reason: 'Scheduled' });
  });
});

describe('`rotation` is edited', () => {
  test('a shorter `every` that is over already rotates at once, a longer one puts it off', async () => {
    const first = await working({ rotation: { every: '10h', overlap: '10m' } });
    await pass(2 * HOUR);
    await editKey({ rotation: { every: '3h' } });
    await pass(0);
    expect(await published()).toBe(first);
    expect((await rotation())?.message).toContain('the next comes at 2026-11-21T15:00:00Z');
    await editKey({ rotation: { every: '2h' } });
    await pass(0);
    expect(await published()).not.toBe(first);
    await editKey({ rotation: { every: '20h' } });
    await pass(HOUR);
    expect((await rotation())?.message).toContain('the next comes at 2026-11-22T10:00:00Z');
  });

  test('cleared: the value stays, the overlap that runs is kept, and nothing is said of rotation after it', async () => {
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await editKey({ rotation: null });
    await pass(0);
    expect((await rotation())?.message).toBe(
      'the key is from 2026-11-21T13:00:00Z; the one before works until 2026-11-21T13:10:00Z; no other is planned',
    );
    expect(await bed.works(first)).toBe(true);
    await pass(10 * HOUR);
    expect(await published()).toBe(second);
    expect(await rotation()).toBeUndefined();
    expect((await bed.sweep()).actions).toEqual({});
  });

  test('an overlap that nobody wrote is a tenth of `every`, as admission would write it', async () => {
    const first = await working({ rotation: { every: '20m' } });
    await pass(20 * MINUTE);
    bed.clock.pass(2 * MINUTE - 1);
    expect(await bed.works(first)).toBe(true);
    bed.clock.pass(1);
    expect(await bed.works(first)).toBe(false);
  });
});

describe('the annotation that asks for a rotation', () => {
  test('is acted on once for each text, also by a process that knows nothing of the one before', async () => {
    const first = await working({});
    await ask('leaked in May');
    await pass(0);
    const second = await published();
    expect(second).not.toBe(first);
    expect(await bed.works(first)).toBe(true);
    bed.restart();
    await pass(MINUTE);
    await bed.hint('VirtualKey', 'chat');
    expect(await published()).toBe(second);
    await ask('and in June');
    await pass(0);
    expect(await published()).not.toBe(second);
  });

  test('gives an hour of overlap where spec.rotation is absent, else the one that is written', async () => {
    const first = await working({});
    await ask('1');
    await pass(0);
    bed.clock.pass(HOUR - 1);
    expect(await bed.works(first)).toBe(true);
    bed.clock.pass(1);
    expect(await bed.works(first)).toBe(false);
    await editKey({ rotation: { every: '30d', overlap: '5m' } });
    const second = await published();
    await ask('2');
    await pass(0);
    await pass(5 * MINUTE);
    expect(await bed.works(second)).toBe(false);
  });

  test('is not acted on when the key is new, when it was taken away and put back, or when a mint came since', async () => {
    const key = makeKey();
    await bed.apply({ ...key, metadata: { ...key.metadata, annotations: { [ROTATE]: '1' } } });
    await bed.sweep();
    const first = await published();
    await pass(MINUTE);
    expect(await published()).toBe(first);
    await ask(null);
    await pass(MINUTE);
    await ask('1');
    await pass(MINUTE);
    expect(await published()).toBe(first);
    await ask('2');
    await bed.remove(RESOURCES.secrets, 'chat-key');
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
    expect(await rotation()).toMatchObject({ status: 'False', reason: 'InvalidAnnotation' });
    await ask(null);
    await pass(0);
    expect(await rotation()).toBeUndefined();
  });

  test('moves on with a key whose object is restored from a backup: it is not acted on twice', async () => {
    await working({ deletionPolicy: 'Retain' });
    await ask('1');
    await pass(0);
    const second = await published();
    await bed.remove(virtualKeys, 'chat');
    await pass(0);
    const key = makeKey();
    await bed.apply({ ...key, metadata: { ...key.metadata, annotations: { [ROTATE]: '1' } } });
    await pass(0);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await published()).toBe(second);
  });
});

describe('a key that does not work', () => {
  test('because it is blocked is rotated all the same: no value gets older than `every`', async () => {
    const first = await working({ ...HOURLY, blocked: true });
    await pass(HOUR);
    expect(await published()).not.toBe(first);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False Blocked');
  });

  test('because it expired keeps its value, says so, and is rotated when it lives again', async () => {
    const first = await working({ ...HOURLY, duration: '30m' });
    await pass(2 * HOUR);
    expect(await published()).toBe(first);
    expect(await rotation()).toMatchObject({ status: 'False', reason: 'Expired' });
    await editKey({ duration: '10h' });
    await pass(0);
    expect(await published()).not.toBe(first);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('because its instance is paused or its database away is rotated once that is over', async () => {
    const first = await working();
    await bed.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await pass(HOUR);
    expect(await published()).toBe(first);
    await bed.edit(gatewayInstances, 'main', { spec: { paused: false } });
    bed.refuse(true);
    await pass(HOUR);
    expect(await published()).toBe(first);
    bed.refuse(false);
    await pass(0);
    expect(await published()).not.toBe(first);
    expect(await bed.works(first)).toBe(true);
  });

  test('because its instance is gone is not rotated', async () => {
    const first = await working();
    await bed.remove(gatewayInstances, 'main');
    await pass(2 * HOUR);
    expect(await published()).toBe(first);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
  });

  test('because its namespace was not admitted for a while is as old as before when it is', async () => {
    await bed.apply(makeKey(HOURLY, 'far', 'apps'));
    await bed.sweep();
    const far = () => bed.value('far-key', 'apps');
    const first = await far();
    await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    await pass(30 * MINUTE);
    expect(await bed.works(first)).toBe(false);
    await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'All' } } });
    await pass(30 * MINUTE - 1000);
    expect(await far()).toBe(first);
    expect(await bed.works(first)).toBe(true);
    await pass(1000);
    expect(await far()).not.toBe(first);
  });
});

describe('a Secret that is touched during an overlap', () => {
  test('and put back to the value before gets the true one back', async () => {
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa(first) } });
    await pass(MINUTE);
    expect(await published()).toBe(second);
    expect(await bed.works(first)).toBe(true);
  });

  test('and put back where the true value is shown nowhere gets another, while both before it work on', async () => {
    await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa(first) } });
    await pass(MINUTE);
    const third = await published();
    expect(new Set([first, second, third]).size).toBe(3);
    expect(await Promise.all([first, second, third].map((value) => bed.works(value)))).toEqual([true, true, true]);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect((await pass(1000)).actions).toEqual({});
  });

  test('and deleted gives a new key; the one before works on as it was told, the lost one does not', async () => {
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await pass(MINUTE);
    const third = await published();
    expect(await Promise.all([first, second, third].map((value) => bed.works(value)))).toEqual([true, false, true]);
  });

  test('and put back after it never makes the ended value work', async () => {
    const first = await working();
    await pass(HOUR);
    await pass(10 * MINUTE);
    await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa(first) } });
    await pass(MINUTE);
    expect(await bed.works(first)).toBe(false);
    expect(await published()).not.toBe(first);
    expect(await bed.works(await published())).toBe(true);
  });
});

test("a user's own key rotates as a person writes on the key, and an edit of the user leaves that be", async () => {
  await bed.apply(makeUser());
  await bed.sweep();
  const first = await bed.value('alice-key');
  await bed.edit(virtualKeys, 'alice', { spec: HOURLY });
  await pass(HOUR);
  const second = await bed.value('alice-key');
  expect(second).not.toBe(first);
  await bed.edit(users, 'alice', { spec: { maxBudget: '30' } });
  await pass(0);
  expect((await bed.get(virtualKeys, 'alice'))?.spec).toMatchObject({ maxBudget: '30', ...HOURLY });
  expect(await bed.value('alice-key')).toBe(second);
});

test('ages are counted by the clock of the database: a run whose clock is wrong rotates nothing too early', async () => {
  const first = await working();
  const real = bed.clock.now;
  bed.database().instance = async () => ({ now: real() - 3 * HOUR });
  await pass(2 * HOUR);
  expect(await published()).toBe(first);
});
