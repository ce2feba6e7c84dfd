// Do runs that overlap, see old lists, or meet people at work end where one undisturbed run ends: one winner per alias,
// one value per key?
import { describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../harness.ts';
import { makeKey, makeSecret } from '../objects.ts';
import { differenceOf, endOf } from './end.ts';
import { interleave, pairs } from './interleave.ts';
import { file, lose, type Scenario, scenarios } from './scenarios.ts';
import { createLaggingLists } from './stale.ts';

type Prepare = Scenario['prepare'];

const prepared = async (prepare: Prepare): Promise<Harness> => {
  const harness = createHarness();
  await prepare(harness);
  return harness;
};
/** Beyond the overlap of any rotation here. */
const LATER = 61 * 60_000;

/**
 * Where it ends for good: what works on for a while no longer works, and the API server has removed what it owes
 * nobody.
 */
async function settle(harness: Harness): Promise<ReadonlyArray<string>> {
  harness.cluster.collectGarbage();
  harness.clock.pass(LATER);
  for (let run = 0; run < 2; run += 1) await harness.resync();
  return endOf(harness, 'all');
}
const undisturbed = async (prepare: Prepare) => {
  const harness = await prepared(prepare);
  await harness.resync();
  await harness.resync();
  return settle(harness);
};

/** The values of all published keys: a run that follows gives nobody another. */
const published = (harness: Harness) =>
  harness.cluster.objects(RESOURCES.secrets).map(({ metadata, data }) => `${metadata.uid} ${JSON.stringify(data)}`);
const isStill = (harness: Harness, given: ReadonlyArray<string>) => {
  const now = new Set(published(harness).map((line) => line.split(' ', 1)[0]));
  return given.filter((line) => now.has(line.split(' ', 1)[0]));
};

/** The next run brings it to its end, changes no key that works, and the one after it has nothing to do. */
async function expectEnd(
  harness: Harness,
  end: ReadonlyArray<string>,
  when: object,
  before: ReadonlyArray<string> = [],
): Promise<void> {
  const { failed } = await harness.resync();
  const given = published(harness);
  expect({ ...when, keys: isStill(harness, before) }).toEqual({
    ...when,
    keys: before.filter((key) => given.includes(key)),
  });
  const quiet = harness.writes();
  await harness.resync();
  expect({ ...when, failed, writes: harness.writes() - quiet }).toEqual({ ...when, failed: {}, writes: 0 });
  expect({ ...when, keys: published(harness) }).toEqual({ ...when, keys: isStill(harness, given) });
  expect({ ...when, differs: differenceOf(await settle(harness), end) }).toEqual({ ...when, differs: [] });
  expect(await harness.works('sk-forged')).toBe(false);
}

/**
 * Of the calls before which a run may be held, every tenth from another one in each scenario: all of them with
 * INTERLEAVINGS=all.
 */
const STRIDE = process.env.INTERLEAVINGS === 'all' ? 1 : 10;
const firstCall = (index: number) => 1 + (index % STRIDE);

const resync = (harness: Harness) => () => harness.resync();
const trigger = (harness: Harness) => () => harness.trigger('VirtualKey', 'chat');

describe.each(scenarios.map((scenario, index) => ({ ...scenario, index })))('when $name', ({ prepare, index }) => {
  test('and a run is held before any of its calls while another does all of its own: same end, and the next run changes no key', async () => {
    const end = await undisturbed(prepare);
    for (let calls = firstCall(index), max = calls; calls <= max; calls += STRIDE) {
      const harness = await prepared(prepare);
      [max] = await interleave(harness, [resync(harness), resync(harness)], [calls - 1]);
      const given = published(harness);
      await expectEnd(harness, end, { calls }, given);
    }
  });

  test.each([
    ['a run', resync],
    ['the same trigger once more', trigger],
  ])('and a trigger is held before any of its writes while %s does all of its own: same end', async (_, other) => {
    const end = await undisturbed(prepare);
    for (let writes = 1, max = 1; writes <= max; writes += 1) {
      const harness = await prepared(prepare);
      [max] = await interleave(harness, [trigger(harness), other(harness)], [writes - 1], 'writes');
      await expectEnd(harness, end, { writes });
    }
  });

  test('and two runs change turns twice, before any of their writes: same end', async () => {
    const end = await undisturbed(prepare);
    const lone = await prepared(prepare);
    const [writes] = await interleave(lone, [resync(lone), async () => undefined], [], 'writes');
    for (const turns of pairs(writes, writes, 16)) {
      const harness = await prepared(prepare);
      await interleave(harness, [resync(harness), resync(harness)], turns, 'writes');
      await expectEnd(harness, end, { turns });
    }
  });

  test('and the lists of a run are one write old: same end', async () => {
    const end = await undisturbed(prepare);
    const { through, lag } = createLaggingLists();
    const harness = createHarness({ through });
    await prepare(harness);
    lag(true);
    for (let run = 0; run < 3; run += 1) await harness.resync();
    lag(false);
    await expectEnd(harness, end, {});
  });
});

const ask = (harness: Harness) =>
  harness.edit(virtualKeys, 'chat', { metadata: { annotations: { 'auth.gateway-operator.dev/rotate': 'now' } } });
const working: Prepare = async (harness) => {
  await harness.apply(...file());
  await harness.resync();
};
const due = scenarios.find(({ name }) => name === 'a key is due to be rotated')?.prepare ?? working;

/** What somebody does while a run is under way. */
const deeds: ReadonlyArray<readonly [string, Prepare, (harness: Harness) => Promise<unknown>]> = [
  [
    'edits a user',
    async (harness) => harness.apply(...file()),
    (harness) => harness.edit(users, 'alice', { spec: { maxBudget: '30' } }),
  ],
  [
    'edits a team',
    async (harness) => harness.apply(...file()),
    (harness) => harness.edit(teams, 'research', { spec: { blocked: true } }),
  ],
  [
    'gives a user another alias for its key',
    async (harness) => harness.apply(...file()),
    (harness) => harness.edit(users, 'alice', { spec: { keyAlias: 'other' } }),
  ],
  [
    "switches off a user's key that is being made",
    async (harness) => harness.apply(...file()),
    (harness) => harness.edit(users, 'alice', { spec: { autoCreateKey: false } }),
  ],
  [
    'edits a key that is due to be rotated',
    due,
    (harness) => harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '12' } }),
  ],
  ['asks for a rotation of a key that is due', due, ask],
  [
    'takes the rotation away from a key that is due',
    due,
    (harness) => harness.edit(virtualKeys, 'chat', { spec: { rotation: null } }),
  ],
  ['deletes a key that is due to be rotated', due, (harness) => harness.remove(virtualKeys, 'chat')],
  [
    'deletes the Secret of a key that is due to be rotated',
    due,
    (harness) => harness.remove(RESOURCES.secrets, 'chat-key'),
  ],
  [
    'removes a key with its finalizer and makes it anew',
    working,
    async (harness) => {
      await lose(harness, 'chat');
      await harness.apply(makeKey({ teamRef: { name: 'research' } }));
    },
  ],
  [
    'removes a key that is being made, and makes it anew',
    async (harness) => harness.apply(...file()),
    async (harness) => {
      await lose(harness, 'chat');
      await harness.apply(makeKey({ teamRef: { name: 'research' } }));
    },
  ],
  [
    'deletes a user whose key is being made',
    async (harness) => harness.apply(...file()),
    (harness) => harness.remove(users, 'alice'),
  ],
];

test.each(deeds.map(([name, ...rest], index) => [name, index, ...rest] as const))(
  'somebody %s, at any moment of a run: the next one ends where it would have ended, had it been done before',
  async (_, index, prepare, deed) => {
    const end = await undisturbed(async (harness) => {
      await prepare(harness);
      await deed(harness);
    });
    for (let calls = firstCall(index), max = calls; calls <= max; calls += STRIDE) {
      const harness = await prepared(prepare);
      [max] = await interleave(harness, [resync(harness), () => deed(harness)], [calls - 1]);
      await expectEnd(harness, end, { calls });
    }
  },
);

/** Of a retained key, to two namespaces, each with an object that wants its alias. */
const copied: Prepare = async (harness) => {
  await harness.apply(...file());
  await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
  await harness.resync();
  const { metadata, data } = (await harness.get(RESOURCES.secrets, 'chat-key')) ?? makeSecret('none', {});
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  const { labels = {}, annotations = {} } = metadata;
  const copy = { name: 'chat-key', namespace: 'other', labels, annotations };
  await harness.apply({ ...makeSecret('chat-key', {}, 'other'), metadata: copy, data });
  await harness.apply(makeKey(), makeKey({}, 'chat', 'other'));
};

test('two objects that bring along the Secret of one retained key, and two runs that meet them: one has it, and it works on', async () => {
  for (let calls = 1, max = 1; calls <= max; calls += 1) {
    const harness = await prepared(copied);
    const value = await harness.value('chat-key');
    [max] = await interleave(harness, [resync(harness), resync(harness)], [calls - 1]);
    expect((await harness.resync()).failed).toEqual({});
    const ready = [await harness.ready(virtualKeys, 'chat'), await harness.ready(virtualKeys, 'chat', 'other')];
    expect({ calls, ready: ready.toSorted() }).toEqual({ calls, ready: ['False AliasTaken', 'True Ready'] });
    const winner = ready[0] === 'True Ready' ? 'default' : 'other';
    expect(await harness.status(virtualKeys, 'chat', winner)).toMatchObject({ keyValue: value, isActive: true });
    expect(await harness.works(value)).toBe(true);
    const quiet = harness.writes();
    await harness.resync();
    expect({ calls, writes: harness.writes() - quiet }).toEqual({ calls, writes: 0 });
  }
});
