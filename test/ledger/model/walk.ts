// A walk of a real store along a history of the model, compared at its end.
import type { EntryKind } from '#core/ports/books.ts';
import type { Store, StoreCall } from '#core/ports/store.ts';
import { type Edge, LIMITS, REQUESTS, type State, type StoreStep } from './state.ts';
import { partsOf } from './sums.ts';

/** A store that can be led: its clock and its faults. */
export interface StoreOfWalk {
  readonly store: Store;
  readonly now: () => number;
  advance(millis: number): Promise<void>;
  wipe(): Promise<void>;
  save(): Promise<void>;
  restore(): Promise<void>;
}

const DAY = 86_400_000;
const LEASE = 60_000;
const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
const idOf = (of: number): string => `request-${of}`;
const nameOf = (text: string) => {
  const [of, kind] = text.split(' ');
  return { id: idOf(Number(of)), kind: kind as EntryKind };
};

/** Leads the real store along the history. */
export function walk({ store, ...world }: StoreOfWalk) {
  const { now } = world;
  const window = { start: now() - DAY, end: now() + 100 * DAY };
  const counters = LIMITS.map((limit, scope) => ({ scopeId: `scope-${scope}`, window, limit: BigInt(limit) }));
  const countersOf = (of: number) => (REQUESTS[of]?.scopes ?? []).flatMap((scope) => counters[scope] ?? []);
  const chargesOf = (of: number) => countersOf(of).map(({ scopeId }) => ({ scopeId, window }));
  const noteOf = (of: number) => ({ charges: chargesOf(of), model: '', identifier: '' });
  // Each renewal is longer than the one before, so that one lease can end alone.
  let lease = LEASE;
  const call = async (epoch: number, part: Partial<StoreCall>) => {
    const reply = await store.call({ ...nothing, epoch, ...part });
    if (reply.outcome !== 'done') throw new Error('another epoch');
    return reply;
  };
  const hold = (of: number) => {
    const amount = BigInt(REQUESTS[of]?.amount ?? 0);
    return {
      ...{ id: idOf(of), amount, minAmount: amount, counters: countersOf(of), note: noteOf(of) },
      ...{ deadline: now() + DAY, lease: LEASE },
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
          return { id, amount, note, at: now(), lease: LEASE, ...more };
        });
        await call(step.epoch, { registers });
        return undefined;
      }
      case 'adjust': {
        const deadline = now() + DAY;
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
        await world.wipe();
        return undefined;
      case 'save':
        await world.save();
        return undefined;
      case 'restore':
        await world.restore();
        return undefined;
    }
    return undefined;
  };

  /** Ends this lease alone. */
  const expire = async (of: number, epoch: number): Promise<void> => {
    const others = REQUESTS.flatMap((_, other) => (other === of ? [] : [{ id: idOf(other), lease: 3 * lease }]));
    await call(epoch, { renewals: others });
    await world.advance(2 * lease);
    lease *= 4;
    await call(epoch, {});
  };
  return {
    async follow(path: ReadonlyArray<Edge>): Promise<void> {
      await store.begin(1);
      for (const { steps, to } of path) {
        for (const step of steps) {
          if (step.call === 'expire') await expire(step.of, to.store.epoch);
          else {
            const answer = await take(step);
            if ('answer' in step && answer !== step.answer)
              throw new Error(`the store answered ${answer}, the model ${step.answer}`);
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

/** The observation that the model predicts for the walk. */
export const seenIn = ({ store }: State) =>
  LIMITS.map((_, scope) => ({
    spent: store.loaded ? store.spent[scope] : undefined,
    parts: store.records
      .flatMap((record, of) => (REQUESTS[of]?.scopes.some((each) => each === scope) ? partsOf(of, record) : []))
      .map(({ of, kind, cost }) => `${idOf(of)} ${kind} ${cost}`)
      .sort(),
  }));
