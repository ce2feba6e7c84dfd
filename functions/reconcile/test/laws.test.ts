// The laws of DESIGN 6, also if runs die or overlap.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness } from '../../../test/reconcile/harness.ts';
import { file, scenarios } from '../../../test/reconcile/laws/scenarios.ts';
import { makeInstance, makeKey, makeSecrets, PASSWORD } from '../../../test/reconcile/objects.ts';

const WRITES = ['migrate', 'openInstance', 'putScope', 'endValues', 'removeValue', 'retire', 'closeInstance'];

test('resyncs over unchanged objects make no write, no event and no condition change, and write nothing to the database', async () => {
  const harness = createHarness();
  await harness.apply(...file());
  await harness.resync();
  const before = harness.cluster.objects();
  const writes = harness.writes();
  const asked: string[] = [];
  harness.onDatabase = (method) => {
    asked.push(method);
  };
  for (let turn = 0; turn < 10; turn += 1) {
    harness.clock.pass(60_000);
    expect(await harness.resync()).toEqual({
      observed: { GatewayInstance: 1, VirtualKey: 2, User: 1, Team: 1 },
      actions: {},
      failed: {},
    });
  }
  expect(harness.writes()).toBe(writes);
  expect(harness.cluster.objects()).toEqual(before);
  expect(asked.filter((method) => WRITES.includes(method))).toEqual([]);
});

test('a resync over unchanged keys costs a constant number of statements', async () => {
  const count = async (keys: number) => {
    const harness = createHarness();
    await harness.apply(...makeSecrets(), makeInstance());
    await harness.apply(...Array.from({ length: keys }, (_, index) => makeKey({}, `k${index}`)));
    await harness.resync();
    let asked = 0;
    harness.onDatabase = () => {
      asked += 1;
    };
    await harness.resync();
    return asked;
  };
  expect(await count(40)).toBe(await count(2));
});

test('of many unchanged keys a resync reads a share of the Secrets, and an hour of resyncs reads them all', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.apply(...Array.from({ length: 510 }, (_, index) => makeKey({}, `k${index}`)));
  await harness.resync();
  await harness.remove(RESOURCES.secrets, 'k7-key');
  const seen = new Set<string>();
  for (let minute = 0; minute < 60; minute += 1) {
    harness.clock.pass(60_000);
    harness.cluster.calls.length = 0;
    await harness.resync();
    const read = harness.cluster.calls.filter(({ verb, name }) => verb === 'get' && name?.endsWith('-key'));
    expect(read.length).toBeLessThan(60);
    for (const { name } of read) seen.add(name ?? '');
  }
  expect(seen.size).toBe(510);
  expect(await harness.works(await harness.value('k7-key'))).toBe(true);
  harness.cluster.calls.length = 0;
  await harness.edit(virtualKeys, 'k8', { spec: { maxBudget: '11' } });
  await harness.resync();
  expect(harness.cluster.calls.some(({ verb, name }) => verb === 'get' && name === 'k8-key')).toBe(true);
});

test('while a database cannot be reached, runs do not read the Secrets of all its keys again and again', async () => {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.apply(...Array.from({ length: 510 }, (_, index) => makeKey({}, `k${index}`)));
  await harness.resync();
  harness.refuse(true);
  for (let minute = 0; minute < 3; minute += 1) {
    harness.clock.pass(60_000);
    harness.cluster.calls.length = 0;
    await harness.resync();
    const read = harness.cluster.calls.filter(({ verb, name }) => verb === 'get' && name?.endsWith('-key'));
    expect(read.length).toBeLessThan(60);
  }
  harness.refuse(false);
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'k8')).toBe('True Ready');
});

test('new spend is one status write of the scopes that spent, and nothing else', async () => {
  const harness = createHarness();
  await harness.apply(...file());
  await harness.resync();
  await harness.spend('chat', '0.000000001');
  expect((await harness.resync()).actions).toEqual({ WriteStatus: 1 });
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0.000000001' });
});

test('conditions change their transition time only when their status changes', async () => {
  const harness = createHarness();
  await harness.apply(...file());
  await harness.resync();
  const time = async () => {
    const { conditions } = await harness.status(virtualKeys, 'chat');
    return conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime;
  };
  const first = await time();
  harness.clock.pass(60_000);
  await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '11' } });
  await harness.resync();
  expect(await time()).toBe(first);
  await harness.edit(virtualKeys, 'chat', { spec: { blocked: true } });
  await harness.resync();
  expect(await time()).toBe('2026-11-21T12:01:00Z');
});

test('a dry run lists the first plan of the run, and changes nothing', async () => {
  for (const { prepare, name } of scenarios) {
    const harness = createHarness();
    await prepare(harness);
    const writes = harness.writes();
    const asked: string[] = [];
    harness.onDatabase = (method) => {
      asked.push(method);
    };
    const planned = (await harness.dryRun()).map(({ action }) => action);
    expect(harness.writes()).toBe(writes);
    expect(asked.filter((method) => WRITES.includes(method))).toEqual([]);
    harness.onDatabase = () => undefined;
    const { actions } = (await harness.resync()) as { actions: Readonly<Record<string, number>> };
    expect(planned.length, name).toBeGreaterThan(0);
    for (const action of planned)
      expect({ name, action, done: (actions[action] ?? 0) >= planned.filter((one) => one === action).length }).toEqual({
        name,
        action,
        done: true,
      });
    expect(await harness.dryRun()).toEqual([]);
  }
});

test('no key and no password is in any log, event, condition, config map, plan or report', async () => {
  for (const { prepare } of scenarios) {
    const harness = createHarness();
    await prepare(harness);
    const values = new Set([PASSWORD, 'sk-upstream', 'sk-forged']);
    const see = () => {
      for (const { data } of harness.cluster.objects(RESOURCES.secrets)) {
        const key = (data as Record<string, string>).key;
        if (key !== undefined) values.add(atob(key));
      }
    };
    see();
    const output: unknown[] = [await harness.dryRun()];
    output.push(await harness.resync());
    see();
    harness.cluster.inject(() => {
      throw new Error('refused');
    });
    await harness.resync().catch((error: unknown) => output.push(String(error)));
    harness.cluster.inject(() => undefined);
    const open = harness.cluster
      .objects()
      .filter(({ kind }) => kind !== 'Secret')
      .map((object) => ({ ...object, status: { ...(object.status as object), keyValue: undefined } }));
    const text = JSON.stringify([output, open, harness.log.lines]);
    for (const value of values) expect(text).not.toContain(value);
    expect(values.size).toBeGreaterThan(3);
  }
});
