// Do the laws of DESIGN 6 hold, whenever a run dies and whoever else runs?
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { createBed } from '../../test/reconcile/bed.ts';
import { file, scenarios } from '../../test/reconcile/laws/scenarios.ts';
import { makeInstance, makeKey, makeSecrets, PASSWORD } from '../../test/reconcile/objects.ts';

const WRITES = ['migrate', 'openInstance', 'putScope', 'retireValues', 'retire', 'closeInstance'];

test('sweeps over unchanged objects make no write, no event and no condition change, and write nothing to the database', async () => {
  const bed = createBed();
  await bed.apply(...file());
  await bed.sweep();
  const before = bed.cluster.objects();
  const writes = bed.writes();
  const asked: string[] = [];
  bed.onDatabase = (method) => {
    asked.push(method);
  };
  for (let turn = 0; turn < 10; turn += 1) {
    bed.clock.pass(60_000);
    expect(await bed.sweep()).toEqual({
      observed: { GatewayInstance: 1, VirtualKey: 2, User: 1, Team: 1 },
      actions: {},
      failed: {},
    });
  }
  expect(bed.writes()).toBe(writes);
  expect(bed.cluster.objects()).toEqual(before);
  expect(asked.filter((method) => WRITES.includes(method))).toEqual([]);
});

test('a sweep over unchanged keys costs a constant number of statements', async () => {
  const count = async (keys: number) => {
    const bed = createBed();
    await bed.apply(...makeSecrets(), makeInstance());
    await bed.apply(...Array.from({ length: keys }, (_, index) => makeKey({}, `k${index}`)));
    await bed.sweep();
    let asked = 0;
    bed.onDatabase = () => {
      asked += 1;
    };
    await bed.sweep();
    return asked;
  };
  expect(await count(40)).toBe(await count(2));
});

test('of many unchanged keys a sweep reads a share of the Secrets, and an hour of sweeps reads them all', async () => {
  const bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
  await bed.apply(...Array.from({ length: 510 }, (_, index) => makeKey({}, `k${index}`)));
  await bed.sweep();
  await bed.remove(RESOURCES.secrets, 'k7-key');
  const seen = new Set<string>();
  for (let minute = 0; minute < 60; minute += 1) {
    bed.clock.pass(60_000);
    bed.cluster.calls.length = 0;
    await bed.sweep();
    const read = bed.cluster.calls.filter(({ verb, name }) => verb === 'get' && name?.endsWith('-key'));
    expect(read.length).toBeLessThan(60);
    for (const { name } of read) seen.add(name ?? '');
  }
  expect(seen.size).toBe(510);
  expect(await bed.works(await bed.value('k7-key'))).toBe(true);
  bed.cluster.calls.length = 0;
  await bed.edit(virtualKeys, 'k8', { spec: { maxBudget: '11' } });
  await bed.sweep();
  expect(bed.cluster.calls.some(({ verb, name }) => verb === 'get' && name === 'k8-key')).toBe(true);
});

test('while a database is away, the Secrets of its many keys are not all read again and again', async () => {
  const bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
  await bed.apply(...Array.from({ length: 510 }, (_, index) => makeKey({}, `k${index}`)));
  await bed.sweep();
  bed.refuse(true);
  for (let minute = 0; minute < 3; minute += 1) {
    bed.clock.pass(60_000);
    bed.cluster.calls.length = 0;
    await bed.sweep();
    const read = bed.cluster.calls.filter(({ verb, name }) => verb === 'get' && name?.endsWith('-key'));
    expect(read.length).toBeLessThan(60);
  }
  bed.refuse(false);
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'k8')).toBe('True Ready');
});

test('new spend is one status write of the scopes that spent, and nothing else', async () => {
  const bed = createBed();
  await bed.apply(...file());
  await bed.sweep();
  await bed.spend('chat', '0.000000001');
  expect((await bed.sweep()).actions).toEqual({ WriteStatus: 1 });
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0.000000001' });
});

test('conditions change their transition time only when their status changes', async () => {
  const bed = createBed();
  await bed.apply(...file());
  await bed.sweep();
  const time = async () => {
    const { conditions } = await bed.status(virtualKeys, 'chat');
    return conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime;
  };
  const first = await time();
  bed.clock.pass(60_000);
  await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '11' } });
  await bed.sweep();
  expect(await time()).toBe(first);
  await bed.edit(virtualKeys, 'chat', { spec: { blocked: true } });
  await bed.sweep();
  expect(await time()).toBe('2026-11-21T12:01:00Z');
});

test('a dry run lists the first plan of the run, and acts on nothing', async () => {
  for (const { prepare, name } of scenarios) {
    const bed = createBed();
    await prepare(bed);
    const writes = bed.writes();
    const asked: string[] = [];
    bed.onDatabase = (method) => {
      asked.push(method);
    };
    const planned = (await bed.dryRun()).map(({ action }) => action);
    expect(bed.writes()).toBe(writes);
    expect(asked.filter((method) => WRITES.includes(method))).toEqual([]);
    bed.onDatabase = () => undefined;
    const { actions } = (await bed.sweep()) as { actions: Readonly<Record<string, number>> };
    expect(planned.length, name).toBeGreaterThan(0);
    for (const action of planned)
      expect({ name, action, done: (actions[action] ?? 0) >= planned.filter((one) => one === action).length }).toEqual({
        ...{ name, action, done: true },
      });
    expect(await bed.dryRun()).toEqual([]);
  }
});

test('no key and no password is in any log, event, condition, config map, plan or report', async () => {
  for (const { prepare } of scenarios) {
    const bed = createBed();
    await prepare(bed);
    const values = new Set([PASSWORD, 'sk-upstream', 'sk-forged']);
    const see = () => {
      for (const { data } of bed.cluster.objects(RESOURCES.secrets)) {
        const key = (data as Record<string, string>).key;
        if (key !== undefined) values.add(atob(key));
      }
    };
    see();
    const said: unknown[] = [await bed.dryRun()];
    said.push(await bed.sweep());
    see();
    bed.cluster.inject(() => {
      throw new Error('refused');
    });
    await bed.sweep().catch((error: unknown) => said.push(String(error)));
    bed.cluster.inject(() => undefined);
    const open = bed.cluster
      .objects()
      .filter(({ kind }) => kind !== 'Secret')
      .map((object) => ({ ...object, status: { ...(object.status as object), keyValue: undefined } }));
    const text = JSON.stringify([said, open, bed.log.lines]);
    for (const value of values) expect(text).not.toContain(value);
    expect(values.size).toBeGreaterThan(3);
  }
});
