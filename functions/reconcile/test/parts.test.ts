// A slow or dead instance delays only its own keys.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Claim } from '#core/ports/registry.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createMemoryLedgerRows } from '../../../test/doubles/ledger-rows.ts';
import { createMemoryRegistry } from '../../../test/doubles/registry.ts';
import type { Database } from '../../../test/reconcile/databases.ts';
import { createHarness, START, sha256 } from '../../../test/reconcile/harness.ts';
import {
  makeInstance,
  makeKey,
  makeSecret,
  makeSecrets,
  makeTeam,
  makeUser,
  PLATFORM,
} from '../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../limits.ts';
import { createMemory } from '../memory.ts';
import { putObject, type RunWorld, toOwnObjectView } from '../observe/objects.ts';
import { partition, runParts } from '../observe/parts.ts';
import { createRoundRobin } from '../round-robin.ts';
import { createWorld, type World } from '../world.ts';

const INSTANCES = 50;
const instanceRef = (name: string) => ({ connectionRef: { instanceRef: { name, namespace: 'default' } } });
const onDatabase = (name: string) => ({
  databaseSecretRef: { ...(makeInstance().spec as { databaseSecretRef: object }).databaseSecretRef, nameRef: name },
});

/** The database of `dead` answers when `answers` is called. Counts the calls of all databases. */
function createDeadDatabase() {
  const block = Promise.withResolvers<void>();
  const clock = { now: () => START };
  const asked = { count: 0 };
  const openDatabase = (dbname: string): Database => {
    const ledgerRows = createMemoryLedgerRows();
    const database = {
      ...ledgerRows,
      book: async () => undefined,
      ...createMemoryRegistry({ clock, recount: ledgerRows.recount }),
    };
    if (dbname !== 'dead') return database;
    return {
      ...database,
      claims: async (uid: string) => {
        asked.count += 1;
        await block.promise;
        return database.claims(uid);
      },
    };
  };
  return { openDatabase, asked, answers: () => block.resolve() };
}

async function fill(harness: ReturnType<typeof createHarness>) {
  await harness.apply(...makeSecrets());
  for (let index = 0; index < INSTANCES; index += 1) {
    const name = `i${index}`;
    const dbname = index === 7 ? 'dead' : name;
    await harness.apply(
      makeSecret(`db-${name}`, { host: 'db', username: 'u', password: 'p', dbname }),
      makeInstance(onDatabase(`db-${name}`), name),
      makeKey(instanceRef(name), name),
    );
  }
}

let dead: ReturnType<typeof createDeadDatabase>;
let harness: ReturnType<typeof createHarness>;
beforeEach(async () => {
  dead = createDeadDatabase();
  harness = createHarness({ openDatabase: dead.openDatabase });
  await fill(harness);
});
const readyKeys = async () => {
  const all = await Promise.all(
    Array.from({ length: INSTANCES }, (_, index) => harness.ready(virtualKeys, `i${index}`)),
  );
  return all.filter((status) => status === 'True Ready').length;
};
/** Waits until this number of keys works. */
const until = async (count: number) => {
  while ((await readyKeys()) < count) await new Promise((resolve) => setImmediate(resolve));
};

test('one dead instance among fifty does not delay the others', async () => {
  let ended = false;
  const resync = harness.resync().then((report) => {
    ended = true;
    return report;
  });
  await until(INSTANCES - 1);
  expect(ended).toBe(false);
  expect(await harness.ready(virtualKeys, 'i7')).not.toBe('True Ready');
  dead.answers();
  expect((await resync).failed).toEqual({});
  expect(await readyKeys()).toBe(INSTANCES);
});

test('a trigger for a key waits only for its own instance, also if a team of the namespace is on a dead one', async () => {
  await harness.apply(makeTeam(instanceRef('i7'), 'elsewhere'));
  const trigger = harness.trigger('VirtualKey', 'i3');
  await until(1);
  expect(await harness.ready(virtualKeys, 'i3')).toBe('True Ready');
  dead.answers();
  await trigger;
});

test('the part of an instance whose database hangs ends with its time, and its conditions show the cause', async () => {
  const late = new Map<() => void, number>();
  harness = createHarness({
    openDatabase: dead.openDatabase,
    timer: (millis, callback) => {
      late.set(callback, millis);
      return () => void late.delete(callback);
    },
  });
  await fill(harness);
  const resync = harness.resync();
  await until(INSTANCES - 1);
  for (const [end, millis] of late) if (millis === 40_000) end();
  expect((await resync).failed).toEqual({});
  expect(await harness.ready(gatewayInstances, 'i7')).toBe('False DatabaseUnreachable');
  expect(JSON.stringify(await harness.status(gatewayInstances, 'i7'))).toContain('everything within 40 s');
});

test('claims that fail to be planned, and scope objects with the same names, do not affect other instances', async () => {
  let isHostile = false;
  const openDatabase = (dbname: string): Database => {
    const database = dead.openDatabase(dbname);
    if (dbname !== 'hostile') return database;
    const damaged = (claims: ReadonlyArray<Claim>) =>
      claims.map((claim) => (isHostile ? ({ ...claim, values: null } as unknown as Claim) : claim));
    return {
      ...database,
      claims: async (uid) => damaged(await database.claims(uid)),
      claimsOf: async (...call) => damaged(await database.claimsOf(...call)),
    };
  };
  harness = createHarness({ openDatabase });
  await harness.apply(
    ...makeSecrets(),
    makeSecret('db-own', { host: 'db', username: 'u', password: 'p', dbname: 'hostile' }),
    makeInstance({}, 'main'),
    makeInstance(onDatabase('db-own'), 'own'),
    makeUser({ autoCreateKey: false }, 'x'),
    makeKey(instanceRef('own'), 'x'),
  );
  await harness.resync();
  isHostile = true;
  await harness.edit(gatewayInstances, 'main', { spec: { models: [] } });
  expect((await harness.resync()).failed).toEqual({ Observe: 1 });
  const main = await harness.get(gatewayInstances, 'main');
  expect(main?.status).toMatchObject({ observedGeneration: main?.metadata.generation });
});

test('each instance is planned with its own scope objects and the objects of other instances that they name', () => {
  const objects = runWorldOf(
    makeInstance({}, 'a'),
    makeInstance({}, 'b'),
    makeInstance({}, 'c'),
    makeKey({ ...instanceRef('a'), userRef: { name: 'alice' }, teamRef: { name: 'blue' } }, 'one'),
    makeUser({ ...instanceRef('b'), teamRefs: [{ name: 'red' }] }, 'alice'),
    makeKey(instanceRef('a'), 'alice'),
    makeTeam({ ...instanceRef('c'), members: [{ name: 'alice' }] }, 'red'),
    makeTeam(instanceRef('a'), 'blue'),
    makeKey(instanceRef('nowhere'), 'lost'),
  );
  const namesOf = ({ keys, users, teams }: Pick<World, 'keys' | 'users' | 'teams'>) =>
    [...keys.keys(), ...users.keys(), ...teams.keys()].map((path) => path.split('/')[1]).join(' ');
  expect(
    partition(objects).map(({ world }) => [...world.listed.keys(), namesOf(world), namesOf(world.referred)]),
  ).toEqual([
    ['default/a', 'one alice blue', 'alice'],
    ['default/b', 'alice', 'alice red'],
    ['default/c', 'red', ''],
    ['lost', ''],
  ]);
});

describe('parts of a run', () => {
  const MINUTE = 60_000;
  const slow = Array.from({ length: 1000 }, (_, index) => `greedy/i${index}`);
  const all = runWorldOf(
    ...[...slow, 'default/quick', 'default/new'].map((path) => {
      const [namespace, name] = path.split('/');
      return makeInstance({}, name, namespace);
    }),
  );
  const memory = createMemory();
  memory.partRuns = new Map(
    [...slow, 'default/quick'].map((path) => [path, { at: 0, took: path === 'default/quick' ? 10 : MINUTE }]),
  );
  beforeEach(() => void vi.useFakeTimers({ now: MINUTE }));
  afterEach(() => void vi.useRealTimers());
  /** Each part of the greedy namespace takes a minute. */
  const resync = async () => {
    const begun = new Map<string, number>();
    const began = Date.now();
    const roundRobin = createRoundRobin(memory.cursors, { hash: sha256, now: began, moves: true });
    const context = { all, limits: PROCESS_LIMITS, memory, roundRobin, deps: { clock: { now: Date.now } } };
    const ending = runParts(context, async ({ path }) => {
      begun.set(path, Date.now() - began);
      await new Promise((resolve) => setTimeout(resolve, path.startsWith('greedy') ? MINUTE : 10));
      return path;
    });
    await vi.runAllTimersAsync();
    return { begun, took: Date.now() - began, ...(await ending) };
  };

  test('a few slow instances of a namespace run concurrently; the run ends in time, and the next begins with the others', async () => {
    const first = await resync();
    expect(first.took).toBe(MINUTE);
    expect([first.ends.length, first.left]).toEqual([10, 992]);
    expect([first.begun.get('default/quick'), first.begun.get('default/new')]).toEqual([0, 0]);
    const second = await resync();
    expect([...second.begun.keys()].filter((path) => first.begun.has(path))).toEqual(['default/quick', 'default/new']);
    expect(second.ends.slice(-2)).toEqual(['default/quick', 'default/new']);
  });
});

function runWorldOf(...all: ReturnType<typeof makeKey>[]): RunWorld {
  const world = createWorld(PLATFORM);
  for (const made of all) {
    const own = toOwnObjectView({ ...made, metadata: { ...made.metadata, uid: made.metadata.name } });
    if (own !== undefined) putObject(world, own);
  }
  return { ...world, complete: 'all', oversizedNamespaces: new Map(), isForPoliciesOnly: false };
}
