// Does a slow or dead instance delay nobody but its own keys?
import { beforeEach, expect, test } from 'vitest';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createMemoryBooks } from '../../../test/doubles/books.ts';
import { createMemoryRegistry } from '../../../test/doubles/registry.ts';
import type { Database } from '../../../test/reconcile/databases.ts';
import { createHarness, START } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../limits.ts';
import { createMemory } from '../memory.ts';
import type { Objects } from '../observe/objects.ts';
import { toOwn } from '../observe/objects.ts';
import { eachPart, partition } from '../observe/parts.ts';

const INSTANCES = 50;
const instanceRef = (name: string) => ({ connectionRef: { instanceRef: { name, namespace: 'default' } } });
const onDatabase = (name: string) => ({
  databaseSecretRef: { ...(makeInstance().spec as { databaseSecretRef: object }).databaseSecretRef, nameRef: name },
});

/** The database of `dead` answers when `answers` is called; it is counted how often any is asked. */
function createDeadDatabase() {
  const silence = Promise.withResolvers<void>();
  const clock = { now: () => START };
  const asked = { count: 0 };
  const openDatabase = (dbname: string): Database => {
    const books = createMemoryBooks();
    const database = {
      ...books,
      book: async () => undefined,
      ...createMemoryRegistry({ clock, recount: books.recount }),
    };
    if (dbname !== 'dead') return database;
    return {
      ...database,
      claims: async (uid: string) => {
        asked.count += 1;
        await silence.promise;
        return database.claims(uid);
      },
    };
  };
  return { openDatabase, asked, answers: () => silence.resolve() };
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
  return all.filter((said) => said === 'True Ready').length;
};
/** Until as many keys work, while nothing else is waited for. */
const until = async (count: number) => {
  while ((await readyKeys()) < count) await new Promise((resolve) => setImmediate(resolve));
};

test('one dead instance among fifty delays the others not at all', async () => {
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

test('a trigger about a key waits for no instance but its own, even where a team of the namespace is on a dead one', async () => {
  await harness.apply(makeTeam(instanceRef('i7'), 'elsewhere'));
  const trigger = harness.trigger('VirtualKey', 'i3');
  await until(1);
  expect(await harness.ready(virtualKeys, 'i3')).toBe('True Ready');
  dead.answers();
  await trigger;
});

test('an instance that hangs for ever ends with its time, and is told as one that could not be looked at', async () => {
  const late: Array<() => void> = [];
  harness = createHarness({
    openDatabase: dead.openDatabase,
    timer: (_, callback) => {
      late.push(callback);
      return () => late.splice(late.indexOf(callback), 1);
    },
  });
  await fill(harness);
  const resync = harness.resync();
  await until(INSTANCES - 1);
  expect(late).toHaveLength(1);
  late[0]?.();
  expect((await resync).failed).toEqual({ Observe: 1 });
});

test('what refers to each other is planned together, each object once', () => {
  const objects = collect(
    makeInstance({}, 'a'),
    makeInstance({}, 'b'),
    makeInstance({}, 'c'),
    makeInstance({}, 'd'),
    makeKey({ ...instanceRef('a'), userRef: { name: 'alice' } }, 'one'),
    makeUser({ ...instanceRef('b'), teamRefs: [{ name: 'red' }] }, 'alice'),
    makeTeam({ ...instanceRef('c') }, 'red'),
    makeTeam({ ...instanceRef('d'), members: [{ name: 'bob' }] }, 'blue'),
    makeKey(instanceRef('nowhere'), 'lost'),
  );
  const parts = partition(objects).map(({ instances, keys, users, teams }) =>
    [...instances.keys(), ...keys.keys(), ...users.keys(), ...teams.keys()].map((path) => path.split('/')[1]).join(' '),
  );
  expect(parts).toEqual(['a b c one alice red', 'd blue', 'lost']);
});

test('a user and the key that is called like it are planned together, also when the user moves to another instance', () => {
  const objects = collect(
    makeInstance({}, 'a'),
    makeInstance({}, 'b'),
    makeUser(instanceRef('b'), 'alice'),
    makeKey(instanceRef('a'), 'alice'),
  );
  expect(partition(objects)).toHaveLength(1);
});

test('parts that were quick go first in the next resync, and the answers stay in the order of the objects', async () => {
  const paths = Array.from({ length: 70 }, (_, index) => `default/i${index}`);
  const all = collect(...paths.map((path) => makeInstance({}, path.slice('default/'.length))));
  const memory = createMemory();
  memory.durations = new Map(paths.map((path) => [path, path === 'default/i69' ? 10 : 60_000]));
  let time = 0;
  const clock = { now: () => time };
  const order: Array<string | undefined> = [];
  const answers = await eachPart(
    { all, limits: PROCESS_LIMITS, now: 0, memory, deps: { clock } },
    async ({ instances }) => {
      const [path] = instances.keys();
      order.push(path);
      if (path === 'default/i0') time += 1;
      return path;
    },
  );
  expect(order[0]).toBe('default/i69');
  expect(answers).toEqual(paths);
  expect([...memory.durations.keys()].sort()).toEqual(paths.toSorted());
});

test('a chain of members on as many instances, however long, is one part', () => {
  const LENGTH = 50_000;
  const [keys, users] = [new Map<string, unknown>(), new Map<string, unknown>()];
  for (let index = 0; index < LENGTH; index += 1) {
    const user = `user-${index}`;
    const at = { metadata: { namespace: 'default', name: user } };
    users.set(`default/${user}`, { ...at, spec: { ...instanceRef(`i${index + 1}`), teamRefs: [] } });
    keys.set(`default/key-${index}`, { ...at, spec: { ...instanceRef(`i${index}`), userRef: { name: user } } });
  }
  expect(partition({ ...collect(), keys, users } as Objects)).toHaveLength(1);
});

function collect(...all: ReturnType<typeof makeKey>[]): Objects {
  const none = () => new Map<string, never>();
  const objects = {
    instances: none(),
    keys: none(),
    users: none(),
    teams: none(),
    malformed: none(),
    violations: none(),
    complete: 'all' as const,
  };
  const folders: Record<string, Map<string, unknown>> = {
    GatewayInstance: objects.instances,
    VirtualKey: objects.keys,
    User: objects.users,
    Team: objects.teams,
  };
  for (const made of all) {
    const object = toOwn({ ...made, metadata: { ...made.metadata, uid: made.metadata.name } })?.object;
    folders[made.kind]?.set(`${made.metadata.namespace}/${made.metadata.name}`, object);
  }
  return objects;
}
