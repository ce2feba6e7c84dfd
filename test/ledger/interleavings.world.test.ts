import { expect, test } from 'vitest';
import { createMemoryStore } from '#adapters/memory/store.ts';
import { createManualTime } from '#adapters/memory/time.ts';
import type { EntryKind } from '#core/ports/books.ts';
import type { Store, StoreCall } from '#core/ports/store.ts';
import {
  type Adversity,
  type Edge,
  initial,
  isQuiet,
  judge,
  LIMITS,
  next,
  partsOf,
  REQUESTS,
  type State,
  type StoreStep,
} from './interleavings.ts';

interface Place {
  readonly state: State;
  readonly from: string | undefined;
  readonly edge: Edge | undefined;
}

/** Every state that can be reached; throws with the whole story where one is wrong, or leads nowhere. */
function explore(left: Adversity): Map<string, Place> {
  const start = initial(left);
  const places = new Map<string, Place>([[JSON.stringify(start), { state: start, from: undefined, edge: undefined }]]);
  for (const [key, { state }] of places) {
    const edges = next(state);
    if (edges.length === 0 && !isQuiet(state)) throw new Error(`nothing goes on after\n${storyOf(places, key)}`);
    for (const edge of edges) {
      const to = JSON.stringify(edge.to);
      const known = places.has(to);
      if (places.size > 400_000) throw new Error('there are more states than can be tried');
      if (!known) places.set(to, { state: edge.to, from: key, edge });
      const wrong = edge.wrong ?? (known ? undefined : judge(edge.to));
      if (wrong !== undefined) throw new Error(`${wrong}:\n${storyOf(places, key)}\n${edge.name}`);
    }
  }
  return places;
}

function pathTo(places: ReadonlyMap<string, Place>, key: string): Edge[] {
  const path: Edge[] = [];
  for (let at = places.get(key); at?.edge !== undefined; at = places.get(at.from ?? '')) path.unshift(at.edge);
  return path;
}
const storyOf = (places: ReadonlyMap<string, Place>, key: string): string =>
  pathTo(places, key)
    .map(({ name }) => name)
    .join('\n');

const DAY = 86_400_000;
const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
const idOf = (of: number): string => `request-${of}`;
const nameOf = (text: string) => {
  const [of, kind] = text.split(' ');
  return { id: idOf(Number(of)), kind: kind as EntryKind };
};

/** The real store, led along the same way. */
function realStore() {
  const { clock, advance } = createManualTime();
  const window = { start: clock.now() - DAY, end: clock.now() + 100 * DAY };
  const counters = LIMITS.map((limit, scope) => ({ scopeId: `scope-${scope}`, window, limit: BigInt(limit) }));
  const countersOf = (of: number) => (REQUESTS[of]?.scopes ?? []).flatMap((scope) => counters[scope] ?? []);
  const chargesOf = (of: number) => countersOf(of).map(({ scopeId }) => ({ scopeId, window }));
  const noteOf = (of: number) => ({ charges: chargesOf(of), model: '', identifier: '' });
  let store: Store = createMemoryStore({ clock });
  // Each renewal outlives the one before, so that one lease can end alone.
  let lease = 1000;
  const call = async (epoch: number, part: Partial<StoreCall>) => {
    const reply = await store.call({ ...nothing, epoch, ...part });
    if (reply.outcome !== 'done') throw new Error('another epoch');
    return reply;
  };
  const hold = (of: number) => {
    const amount = BigInt(REQUESTS[of]?.amount ?? 0);
    return {
      id: idOf(of),
      amount,
      least: amount,
      counters: countersOf(of),
      note: noteOf(of),
      deadline: clock.now() + DAY,
      lease: DAY,
    };
  };
  const settlement = (of: number, counted: boolean) => {
    const tokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 };
    const note = { ...noteOf(of), kind: 'settled' as const, tokens, estimated: false, settledAt: 0 };
    const cost = BigInt(REQUESTS[of]?.cost ?? 0);
    return { id: idOf(of), cost, note, ...(counted ? { counters: chargesOf(of) } : {}) };
  };

  const take = async (step: StoreStep): Promise<string | undefined> => {
    switch (step.call) {
      case 'hold':
        return (await call(step.epoch, { holds: [hold(step.of)] })).holds[0]?.outcome;
      case 'settle':
        return (await call(step.epoch, { settles: [settlement(step.of, step.counted)] })).settles[0]?.outcome;
      case 'release':
        return (await call(step.epoch, { releases: [{ id: idOf(step.of), lease: 1000 * DAY }] })).releases[0]?.outcome;
      case 'load': {
        const booked = step.booked.map(nameOf);
        const loads = counters.map(({ scopeId }, at) => ({
          scopeId,
          window,
          spent: BigInt(step.sums[at] ?? 0),
          booked,
        }));
        await call(step.epoch, { loads });
        return undefined;
      }
      case 'register': {
        const registers = step.of.map((of, at) => {
          const charged = step.charged[at];
          const { id, note } = hold(of);
          const amount = BigInt(step.amounts[at] ?? 0);
          const more = charged === undefined ? {} : { charged: BigInt(charged) };
          return { id, amount, note, at: clock.now(), lease: DAY, ...more };
        });
        await call(step.epoch, { registers });
        return undefined;
      }
      case 'adjust': {
        const deadline = clock.now() + DAY;
        await call(step.epoch, {
          adjusts: counters.map(({ scopeId }, at) => ({ scopeId, window, by: BigInt(step.by[at] ?? 0), deadline })),
        });
        return undefined;
      }
      case 'forget':
        await store.forget(step.names.map(nameOf));
        return undefined;
      case 'begin':
        await store.begin(step.epoch);
        return undefined;
      case 'wipe':
        store = createMemoryStore({ clock, epoch: 0 });
        return undefined;
    }
    return undefined;
  };

  /** Ends this lease alone. */
  const expire = async (of: number, epoch: number): Promise<void> => {
    lease *= 2;
    const others = REQUESTS.flatMap((_, other) => (other === of ? [] : [{ id: idOf(other), lease: 2 * DAY + lease }]));
    await call(epoch, { renewals: others });
    await advance(DAY + 1);
    await call(epoch, {});
  };
  return {
    async follow(path: ReadonlyArray<Edge>): Promise<void> {
      for (const { steps, to } of path) {
        for (const step of steps) {
          if (step.call === 'expire') await expire(step.of, to.store.epoch);
          else {
            const answer = await take(step);
            if ('answer' in step && answer !== step.answer)
              throw new Error(`the store said ${answer}, the model ${step.answer}`);
          }
        }
      }
    },
    async see() {
      const { counters: seen } = await store.survey(counters.map(({ scopeId }) => ({ scopeId, window })));
      return seen.map(({ spent, parts }) => ({
        spent: spent === undefined ? undefined : Number(spent),
        parts: parts.map(({ id, kind, cost }) => `${id} ${kind} ${cost}`).sort(),
      }));
    },
  };
}

const seenIn = ({ store }: State) =>
  LIMITS.map((_, scope) => ({
    spent: store.loaded ? store.spent[scope] : undefined,
    parts: store.records
      .flatMap((record, of) => (REQUESTS[of]?.scopes.some((each) => each === scope) ? partsOf(of, record) : []))
      .map(({ of, kind, cost }) => `${idOf(of)} ${kind} ${cost}`)
      .sort(),
  }));

test.each<Adversity>([
  { lost: 2, expired: 0, wiped: 0, slept: 0 },
  { lost: 1, expired: 1, wiped: 0, slept: 0 },
  { lost: 1, expired: 0, wiped: 1, slept: 0 },
  { lost: 0, expired: 1, wiped: 1, slept: 0 },
  { lost: 0, expired: 0, wiped: 1, slept: 1 },
])(
  'whatever comes in whatever order (%o), no limit is exceeded, nothing is charged twice or lost, nobody is refused for nothing, and all headroom returns',
  async (left) => {
    const places = explore(left);
    const keys = [...places.keys()];
    const quiet = [...places.values()].filter(({ state }) => isQuiet(state));
    expect(quiet.length).toBeGreaterThan(10);
    // The real store goes the same way, at a sample of all ends.
    const every = Math.max(1, Math.floor(keys.length / 500));
    for (let at = 0; at < keys.length; at += every) {
      const key = keys[at] ?? '';
      const real = realStore();
      const path = pathTo(places, key);
      await real.follow(path).catch((error) => {
        throw new Error(`${error.message}:\n${storyOf(places, key)}`);
      });
      const { state } = places.get(key) ?? {};
      if (state !== undefined && state.store.epoch > 0)
        expect([storyOf(places, key), await real.see()]).toEqual([storyOf(places, key), seenIn(state)]);
    }
  },
  120_000,
);
