// Rotation of key values: a value is replaced in time, and the previous one works until the end of the overlap.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeUser } from '../../../test/reconcile/objects.ts';
import { createRotation, HOUR, HOURLY, MINUTE } from '../../../test/reconcile/rotation.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const { published, working, editKey, pass, rotation, messages } = createRotation(() => harness);

describe('a key that rotates', () => {
  test('has a new value in its Secret when the age of the previous one is `every`, and not before', async () => {
    const first = await working();
    await pass(HOUR - 1000);
    expect(await published()).toBe(first);
    await pass(1000);
    const second = await published();
    expect(second).not.toBe(first);
    expect(await harness.works(second)).toBe(true);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
      keyID: sha256(second),
      keyValue: second,
      keySecretRef: 'chat-key',
      isActive: true,
    });
  });

  test('works with both values until the overlap is over, which needs no run', async () => {
    const first = await working();
    await pass(HOUR);
    harness.clock.pass(10 * MINUTE - 1);
    expect(await harness.works(first)).toBe(true);
    harness.clock.pass(1);
    expect(await harness.works(first)).toBe(false);
    expect(await harness.works(await published())).toBe(true);
    expect((await harness.resync()).actions).toMatchObject({ EndValues: 1 });
    expect((await harness.resync()).actions).toEqual({});
  });

  test('keeps its budget, its window and the end of its lifetime', async () => {
    await working({ ...HOURLY, duration: '2h' });
    await harness.spend('chat', '1.5');
    const before = await harness.status(virtualKeys, 'chat');
    await pass(HOUR);
    const { currentSpend, budgetResetDate, expiryDate } = await harness.status(virtualKeys, 'chat');
    expect({ currentSpend, budgetResetDate, expiryDate }).toEqual({
      currentSpend: '1.5',
      budgetResetDate: before.budgetResetDate,
      expiryDate: before.expiryDate,
    });
  });

  test('shows when the next rotation is, and until when the previous value works', async () => {
    await working();
    expect(await rotation()).toMatchObject({
      status: 'True',
      reason: 'Scheduled',
      message: 'the current value was created at 2026-11-21T12:00:00Z; the next rotation is at 2026-11-21T13:00:00Z',
    });
    await pass(HOUR);
    expect(await rotation()).toMatchObject({
      reason: 'Overlap',
      message:
        'the current value was created at 2026-11-21T13:00:00Z; the previous one works until 2026-11-21T13:10:00Z; the next rotation is at 2026-11-21T14:00:00Z',
    });
    expect(harness.events('chat')).toEqual(['KeyCreated', 'Ready', 'KeyRotated']);
    expect(messages()).toContain(
      'KeyRotated: Secret "chat-key" has a new key value; the previous one works until 2026-11-21T13:10:00Z',
    );
    await pass(10 * MINUTE);
    expect(await rotation()).toMatchObject({ reason: 'Scheduled' });
  });

  test('rotates once, however late the run is, and then on schedule', async () => {
    await working();
    await pass(5 * HOUR + 30 * MINUTE);
    const second = await published();
    await pass(59 * MINUTE);
    expect(await published()).toBe(second);
    await pass(MINUTE);
    expect(await published()).not.toBe(second);
  });

  test('has the new value in all keys of its Secret', async () => {
    await working({ ...HOURLY, secretTemplate: { data: { token: `\${key}`, OPENAI_API_KEY: `\${key}` } } });
    await pass(HOUR);
    const { data } = (await harness.get(RESOURCES.secrets, 'chat-key')) as unknown as { data: Record<string, string> };
    expect(new Set(Object.values(data)).size).toBe(1);
    expect(await harness.works(await published())).toBe(true);
  });

  test('shows its new value redacted if the instance has Redacted, and another keyID', async () => {
    await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
    await working();
    await pass(HOUR);
    const value = await published();
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
      keyID: sha256(value),
      keyValue: `sk-...${value.slice(-4)}`,
    });
    expect((await pass(1000)).actions).toEqual({});
  });

  test('rotates in time although a resync reads only few Secrets of many thousand keys', async () => {
    await harness.apply(...Array.from({ length: 510 }, (_, index) => makeKey({}, `k${index}`)));
    const first = await working();
    await pass(HOUR);
    expect(await published()).not.toBe(first);
    await pass(10 * MINUTE);
    expect(await rotation()).toMatchObject({ reason: 'Scheduled' });
  });
});

describe('`rotation` is edited', () => {
  test('a shorter `every` that is already over rotates immediately, a longer one delays the rotation', async () => {
    const first = await working({ rotation: { every: '10h', overlap: '10m' } });
    await pass(2 * HOUR);
    await editKey({ rotation: { every: '3h' } });
    await pass(0);
    expect(await published()).toBe(first);
    expect((await rotation())?.message).toContain('the next rotation is at 2026-11-21T15:00:00Z');
    await editKey({ rotation: { every: '2h' } });
    await pass(0);
    expect(await published()).not.toBe(first);
    await editKey({ rotation: { every: '20h' } });
    await pass(HOUR);
    expect((await rotation())?.message).toContain('the next rotation is at 2026-11-22T10:00:00Z');
  });

  test('cleared: the value stays, the current overlap continues, and the condition disappears after it', async () => {
    const first = await working();
    await pass(HOUR);
    const second = await published();
    await editKey({ rotation: null });
    await pass(0);
    expect((await rotation())?.message).toBe(
      'the current value was created at 2026-11-21T13:00:00Z; the previous one works until 2026-11-21T13:10:00Z; no rotation is planned',
    );
    expect(await harness.works(first)).toBe(true);
    await pass(10 * HOUR);
    expect(await published()).toBe(second);
    expect(await rotation()).toBeUndefined();
    expect((await harness.resync()).actions).toEqual({});
  });

  test('an overlap that is not in the spec is a tenth of `every`, as the admission webhook would set it', async () => {
    const first = await working({ rotation: { every: '20m' } });
    await pass(20 * MINUTE);
    harness.clock.pass(2 * MINUTE - 1);
    expect(await harness.works(first)).toBe(true);
    harness.clock.pass(1);
    expect(await harness.works(first)).toBe(false);
  });
});

test("a user's own key rotates as its own spec requests, and an edit of the user does not change that", async () => {
  await harness.apply(makeUser());
  await harness.resync();
  const first = await harness.value('alice-key');
  await harness.edit(virtualKeys, 'alice', { spec: HOURLY });
  await pass(HOUR);
  const second = await harness.value('alice-key');
  expect(second).not.toBe(first);
  await harness.edit(users, 'alice', { spec: { maxBudget: '30' } });
  await pass(0);
  expect((await harness.get(virtualKeys, 'alice'))?.spec).toMatchObject({ maxBudget: '30', ...HOURLY });
  expect(await harness.value('alice-key')).toBe(second);
});

test('ages are counted by the clock of the database: a run with a wrong clock rotates nothing too early', async () => {
  const first = await working();
  const real = harness.clock.now;
  harness.database().instance = async () => ({ isOpen: true, hasClaims: true, now: real() - 3 * HOUR });
  await pass(2 * HOUR);
  expect(await published()).toBe(first);
});
