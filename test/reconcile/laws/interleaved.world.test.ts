// Do runs that overlap, see old lists, or meet people at work end where one undisturbed run ends: one winner per alias, one value per key?
import { describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { teams, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../bed.ts';
import { makeKey, makeSecret } from '../objects.ts';
import { differenceOf, endOf } from './end.ts';
import { interleave, pairs } from './interleave.ts';
import { file, lose, type Scenario, scenarios } from './scenarios.ts';
import { createLaggingLists } from './stale.ts';

type Prepare = Scenario['prepare'];

const prepared = async (prepare: Prepare): Promise<Bed> => {
  const bed = createBed();
  await prepare(bed);
  return bed;
};
/** Beyond the overlap of any rotation here. */
const LATER = 61 * 60_000;

/** Where it ends for good: what works on for a while works no more, and the API server has removed what it owes nobody. */
async function settle(bed: Bed): Promise<ReadonlyArray<string>> {
  bed.cluster.collectGarbage();
  bed.clock.pass(LATER);
  for (let run = 0; run < 2; run += 1) await bed.sweep();
  return endOf(bed, 'all');
}
const undisturbed = async (prepare: Prepare) => {
  const bed = await prepared(prepare);
  await bed.sweep();
  await bed.sweep();
  return settle(bed);
};

/** The values of all published keys: a run that follows gives nobody another. */
const published = (bed: Bed) =>
  bed.cluster.objects(RESOURCES.secrets).map(({ metadata, data }) => `${metadata.uid} ${JSON.stringify(data)}`);
const isStill = (bed: Bed, given: ReadonlyArray<string>) => {
  const now = new Set(published(bed).map((line) => line.split(' ', 1)[0]));
  return given.filter((line) => now.has(line.split(' ', 1)[0]));
};

/** The next run brings it to its end, changes no key that works, and the one after it has nothing to do. */
async function expectEnd(
  bed: Bed,
  end: ReadonlyArray<string>,
  when: object,
  before: ReadonlyArray<string> = [],
): Promise<void> {
  const { failed } = await bed.sweep();
  const given = published(bed);
  expect({ ...when, keys: isStill(bed, before) }).toEqual({
    ...when,
    keys: before.filter((key) => given.includes(key)),
  });
  const quiet = bed.writes();
  await bed.sweep();
  expect({ ...when, failed, writes: bed.writes() - quiet }).toEqual({ ...when, failed: {}, writes: 0 });
  expect({ ...when, keys: published(bed) }).toEqual({ ...when, keys: isStill(bed, given) });
  expect({ ...when, differs: differenceOf(await settle(bed), end) }).toEqual({ ...when, differs: [] });
  expect(await bed.works('sk-forged')).toBe(false);
}

const sweep = (bed: Bed) => () => bed.sweep();
const hint = (bed: Bed) => () => bed.hint('VirtualKey', 'chat');

describe.each(scenarios)('when $name', ({ prepare }) => {
  test('and a run is held before any of its calls while another does all of its own: same end, and the next run changes no key', async () => {
    const end = await undisturbed(prepare);
    for (let calls = 1, most = 1; calls <= most; calls += 1) {
      const bed = await prepared(prepare);
      [most] = await interleave(bed, [sweep(bed), sweep(bed)], [calls - 1]);
      const given = published(bed);
      await expectEnd(bed, end, { calls }, given);
    }
  });

  test.each([
    ['a run', sweep],
    ['the same hint once more', hint],
  ])('and a hint is held before any of its writes while %s does all of its own: same end', async (_, other) => {
    const end = await undisturbed(prepare);
    for (let writes = 1, most = 1; writes <= most; writes += 1) {
      const bed = await prepared(prepare);
      [most] = await interleave(bed, [hint(bed), other(bed)], [writes - 1], 'writes');
      await expectEnd(bed, end, { writes });
    }
  });

  test('and two runs change turns twice, before any of their writes: same end', async () => {
    const end = await undisturbed(prepare);
    const lone = await prepared(prepare);
    const [writes] = await interleave(lone, [sweep(lone), async () => undefined], [], 'writes');
    for (const turns of pairs(writes, writes, 16)) {
      const bed = await prepared(prepare);
      await interleave(bed, [sweep(bed), sweep(bed)], turns, 'writes');
      await expectEnd(bed, end, { turns });
    }
  });

  test('and the lists of a run are one write old: same end', async () => {
    const end = await undisturbed(prepare);
    const { through, lag } = createLaggingLists();
    const bed = createBed({ through });
    await prepare(bed);
    lag(true);
    for (let run = 0; run < 3; run += 1) await bed.sweep();
    lag(false);
    await expectEnd(bed, end, {});
  });
});

const ask = (bed: Bed) =>
  bed.edit(virtualKeys, 'chat', { metadata: { annotations: { 'auth.gateway-operator.dev/rotate': 'now' } } });
const working: Prepare = async (bed) => {
  await bed.apply(...file());
  await bed.sweep();
};
const due = scenarios.find(({ name }) => name === 'a key is due to be rotated')?.prepare ?? working;

/** What somebody does while a run is under way. */
const deeds: ReadonlyArray<readonly [string, Prepare, (bed: Bed) => Promise<unknown>]> = [
  [
    'edits a user',
    async (bed) => bed.apply(...file()),
    (bed) => bed.edit(users, 'alice', { spec: { maxBudget: '30' } }),
  ],
  [
    'edits a team',
    async (bed) => bed.apply(...file()),
    (bed) => bed.edit(teams, 'research', { spec: { blocked: true } }),
  ],
  [
    'gives a user another alias for its key',
    async (bed) => bed.apply(...file()),
    (bed) => bed.edit(users, 'alice', { spec: { keyAlias: 'other' } }),
  ],
  [
    "switches off a user's key that is being made",
    async (bed) => bed.apply(...file()),
    (bed) => bed.edit(users, 'alice', { spec: { autoCreateKey: false } }),
  ],
  ['edits a key that is due to be rotated', due, (bed) => bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '12' } })],
  ['asks for a rotation of a key that is due', due, ask],
  [
    'takes the rotation away from a key that is due',
    due,
    (bed) => bed.edit(virtualKeys, 'chat', { spec: { rotation: null } }),
  ],
  ['deletes a key that is due to be rotated', due, (bed) => bed.remove(virtualKeys, 'chat')],
  ['deletes the Secret of a key that is due to be rotated', due, (bed) => bed.remove(RESOURCES.secrets, 'chat-key')],
  [
    'removes a key with its finalizer and makes it anew',
    working,
    async (bed) => {
      await lose(bed, 'chat');
      await bed.apply(makeKey({ teamRef: { name: 'research' } }));
    },
  ],
  [
    'removes a key that is being made, and makes it anew',
    async (bed) => bed.apply(...file()),
    async (bed) => {
      await lose(bed, 'chat');
      await bed.apply(makeKey({ teamRef: { name: 'research' } }));
    },
  ],
  ['deletes a user whose key is being made', async (bed) => bed.apply(...file()), (bed) => bed.remove(users, 'alice')],
];

test.each(deeds)(
  'somebody %s, at any moment of a run: the next one ends where it would have ended, had it been done before',
  async (_, prepare, deed) => {
    const end = await undisturbed(async (bed) => {
      await prepare(bed);
      await deed(bed);
    });
    for (let calls = 1, most = 1; calls <= most; calls += 1) {
      const bed = await prepared(prepare);
      [most] = await interleave(bed, [sweep(bed), () => deed(bed)], [calls - 1]);
      await expectEnd(bed, end, { calls });
    }
  },
);

/** Of a retained key, to two namespaces, each with an object that wants its alias. */
const copied: Prepare = async (bed) => {
  await bed.apply(...file());
  await bed.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
  await bed.sweep();
  const { metadata, data } = (await bed.get(RESOURCES.secrets, 'chat-key')) ?? makeSecret('none', {});
  await bed.remove(virtualKeys, 'chat');
  await bed.sweep();
  const { labels = {}, annotations = {} } = metadata;
  const copy = { name: 'chat-key', namespace: 'other', labels, annotations };
  await bed.apply({ ...makeSecret('chat-key', {}, 'other'), metadata: copy, data });
  await bed.apply(makeKey(), makeKey({}, 'chat', 'other'));
};

test('two objects that bring along the Secret of one retained key, and two runs that meet them: one has it, and it works on', async () => {
  for (let calls = 1, most = 1; calls <= most; calls += 1) {
    const bed = await prepared(copied);
    const value = await bed.value('chat-key');
    [most] = await interleave(bed, [sweep(bed), sweep(bed)], [calls - 1]);
    expect((await bed.sweep()).failed).toEqual({});
    const ready = [await bed.ready(virtualKeys, 'chat'), await bed.ready(virtualKeys, 'chat', 'other')];
    expect({ calls, ready: ready.toSorted() }).toEqual({ calls, ready: ['False AliasTaken', 'True Ready'] });
    const winner = ready[0] === 'True Ready' ? 'default' : 'other';
    expect(await bed.status(virtualKeys, 'chat', winner)).toMatchObject({ keyValue: value, isActive: true });
    expect(await bed.works(value)).toBe(true);
    const quiet = bed.writes();
    await bed.sweep();
    expect({ calls, writes: bed.writes() - quiet }).toEqual({ calls, writes: 0 });
  }
});
