// Do the laws of DESIGN 6 hold, whenever a run dies and whoever else runs?
import { expect, test } from 'vitest';
import {
  type Bed,
  createBed,
  gatewayInstances,
  makeInstance,
  makeKey,
  makeSecrets,
  makeTeam,
  makeUser,
  PASSWORD,
  RESOURCES,
  users,
  virtualKeys,
} from '../../test/reconcile/bed.ts';

const file = () => [
  ...makeSecrets(),
  makeInstance(),
  makeTeam({ members: [{ name: 'alice' }] }),
  makeUser(),
  makeKey({ teamRef: { name: 'research' } }),
];

/** What people and the gateway see, without ids, values and times. */
async function outcome(bed: Bed) {
  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const claims = await bed.database().claims(uid);
  const keys = await Promise.all(
    ['chat', 'alice'].map(async (name) => {
      const value = await bed.value(`${name}-key`);
      const { keyValue, isActive } = await bed.status(virtualKeys, name);
      return { name, isActive, shown: keyValue === value, works: await bed.works(value) };
    }),
  );
  return {
    ready: await Promise.all([
      bed.ready(gatewayInstances, 'main'),
      bed.ready(users, 'alice'),
      bed.ready(virtualKeys, 'chat'),
      bed.ready(virtualKeys, 'alice'),
    ]),
    keys,
    values: claims
      .map(
        (claim) =>
          `${claim.kind} ${claim.alias}: ${claim.values.filter(({ notAfter }) => notAfter === undefined).length}`,
      )
      .sort(),
    secrets: bed.cluster.objects(RESOURCES.secrets).map(({ metadata }) => metadata.name),
  };
}

const GOOD = {
  ready: ['True Ready', 'True Ready', 'True Ready', 'True Ready'],
  keys: [
    { name: 'chat', isActive: true, shown: true, works: true },
    { name: 'alice', isActive: true, shown: true, works: true },
  ],
  values: ['key alice-key: 1', 'key chat: 1', 'team research: 0', 'user alice@example.com: 0'],
  secrets: ['alice-key', 'chat-key', 'db', 'openai', 'store'],
};

/** Something happens to a world that had converged; the run after it is the one that dies. */
const scenarios: ReadonlyArray<readonly [string, (bed: Bed) => Promise<void>]> = [
  ['nothing was there', async (bed) => bed.apply(...file())],
  [
    'a Secret was lost',
    async (bed) => {
      await bed.apply(...file());
      await bed.sweep();
      await bed.remove(RESOURCES.secrets, 'chat-key');
    },
  ],
  [
    'a Secret was edited',
    async (bed) => {
      await bed.apply(...file());
      await bed.sweep();
      await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
    },
  ],
  [
    'a Secret was edited where the true value is shown nowhere',
    async (bed) => {
      await bed.apply(...file());
      await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
      await bed.sweep();
      await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
      await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Full' } });
    },
  ],
  [
    "a user's key has another alias",
    async (bed) => {
      await bed.apply(...file());
      await bed.edit(users, 'alice', { spec: { keyAlias: 'old' } });
      await bed.sweep();
      await bed.edit(users, 'alice', { spec: { keyAlias: 'alice-key' } });
    },
  ],
  [
    'an instance was made anew',
    async (bed) => {
      await bed.apply(...file());
      await bed.sweep();
      await bed.remove(gatewayInstances, 'main');
      await bed.sweep();
      await bed.apply(makeInstance());
    },
  ],
  [
    'a key is due to be rotated',
    async (bed) => {
      await bed.apply(...file());
      await bed.edit(virtualKeys, 'chat', { spec: { rotation: { every: '1h', overlap: '30m' } } });
      await bed.sweep();
      bed.clock.pass(3_600_000);
    },
  ],
  [
    'an annotation asks for a rotation, and the overlap of the one before is over',
    async (bed) => {
      const ask = (text: string) =>
        bed.edit(virtualKeys, 'chat', { metadata: { annotations: { 'auth.gateway-operator.dev/rotate': text } } });
      await bed.apply(...file());
      await bed.sweep();
      await ask('once');
      await bed.sweep();
      await ask('twice');
      bed.clock.pass(2 * 3_600_000);
    },
  ],
  [
    'an instance was made anew and names the ledger of the one before',
    async (bed) => {
      await bed.apply(...file());
      await bed.sweep();
      const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
      await bed.remove(gatewayInstances, 'main');
      await bed.sweep();
      const instance = makeInstance();
      const annotations = { 'instance.gateway-operator.dev/adopt-ledger': uid };
      await bed.apply({ ...instance, metadata: { ...instance.metadata, annotations } });
    },
  ],
];

const isWrite = (verb: string) => verb !== 'get' && verb !== 'list';
const WRITES = [
  'migrate',
  'openInstance',
  'claim',
  'addValue',
  'retireValues',
  'writePolicies',
  'retire',
  'closeInstance',
];

test.each(scenarios)(
  '%s, and the run dies at any of its writes: one more run converges to the same world',
  async (_, prepare) => {
    for (const when of ['before', 'after'] as const) {
      for (let step = 1; ; step += 1) {
        const bed = createBed();
        await prepare(bed);
        let count = 0;
        let died = false;
        const dies = () => {
          if (!died) count += 1;
          died = died || count === step;
          return died;
        };
        // Once dead it writes nothing any more; `after` means that the last write happened and nobody heard of it.
        bed.cluster.inject(({ verb }) => {
          if (!isWrite(verb)) return undefined;
          const wasDead = died;
          if (!dies()) return undefined;
          if (when === 'after' && !wasDead) return 'lost';
          throw new Error('killed');
        });
        bed.onDatabase = (method) => {
          if (WRITES.includes(method) && dies()) throw new Error('killed');
        };
        await bed.sweep();
        bed.cluster.inject(() => undefined);
        bed.onDatabase = () => undefined;
        bed.restart();
        bed.clock.pass(1000);
        const report = await bed.sweep();
        expect({ step, when, failed: report.failed }).toEqual({ step, when, failed: {} });
        expect({ step, when, ...(await outcome(bed)) }).toEqual({ step, when, ...GOOD });
        expect(await bed.works('sk-forged')).toBe(false);
        const quiet = bed.writes();
        expect((await bed.sweep()).actions).toMatchObject({});
        expect({ step, when, writes: bed.writes() - quiet }).toEqual({ step, when, writes: 0 });
        if (!died) break;
      }
    }
  },
);

/** Lets two runs go on by turns: each write of either waits for the toss. */
function interleave(bed: Bed, tosses: number) {
  let toss = tosses;
  const turn = async () => {
    const waits = toss % 3;
    toss = Math.floor(toss / 3);
    for (let wait = 0; wait < waits * 4; wait += 1) await Promise.resolve();
    if (waits === 2) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  bed.cluster.inject(async () => {
    await turn();
    return undefined;
  });
  bed.onDatabase = turn;
}

test.each(scenarios)(
  '%s, and two runs meet it at once: one winner per alias, one key value, and the next run finds it so',
  async (_, prepare) => {
    for (let tosses = 0; tosses < 25; tosses += 1) {
      const bed = createBed();
      await prepare(bed);
      interleave(bed, tosses * 7919 * 31);
      await Promise.all([bed.sweep(), bed.hint('VirtualKey', 'chat'), bed.sweep()]);
      bed.cluster.inject(() => undefined);
      bed.onDatabase = () => undefined;
      const published = await bed.value('chat-key');
      const report = await bed.sweep();
      expect({ tosses, failed: report.failed }).toEqual({ tosses, failed: {} });
      expect({ tosses, ...(await outcome(bed)) }).toEqual({ tosses, ...GOOD });
      expect({ tosses, value: await bed.value('chat-key') }).toEqual({ tosses, value: published });
      expect(await bed.works('sk-forged')).toBe(false);
    }
  },
);

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

test('a dry run lists what the run then does, and acts on nothing', async () => {
  for (const [name, prepare] of scenarios) {
    // Of a ledger that is to be adopted it says only that.
    const isKnown = !name.includes('ledger');
    const bed = createBed();
    await prepare(bed);
    const writes = bed.writes();
    const asked: string[] = [];
    bed.onDatabase = (method) => {
      asked.push(method);
    };
    const plan = await bed.dryRun();
    expect(bed.writes()).toBe(writes);
    expect(asked.filter((method) => WRITES.includes(method))).toEqual([]);
    bed.onDatabase = () => undefined;
    const count = (names: ReadonlyArray<string>) =>
      Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));
    const { actions } = await bed.sweep();
    if (isKnown) expect(count(plan.map(({ action }) => action))).toEqual(actions);
    else
      expect(plan).toContainEqual(expect.objectContaining({ why: expect.stringContaining('goes on with the keys') }));
    expect(await bed.dryRun()).toEqual([]);
  }
});

test('no key and no password is in any log, event, condition, config map, plan or report', async () => {
  for (const [, prepare] of scenarios) {
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
