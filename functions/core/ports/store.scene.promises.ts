// The scene of the promises of stores: scopes and counters of an hour, holds of any size, and their ends.
import type { Millis, Nano } from './money.ts';
import type { ScopeWindow } from './policy.ts';
import type { Counter, HoldAnswer, HoldOperation, StaleEpoch, Store, StoreCall, StoreReply } from './store.ts';

export interface StoreUnderTest {
  readonly store: Store;
  readonly epoch: number;
  readonly now: () => Millis;
  /** Advances the store's clock. Leases in this suite are short, so that a real store can really wait. */
  readonly advance: (millis: Millis) => Promise<void>;
}

/** A lease that ends within a test. */
export const LEASE: Millis = 400;
export const HOUR: Millis = 3_600_000;

/** `under` is called for each operation: a test may make another store. */
export function storeScene(under: () => StoreUnderTest) {
  let made = 0;

  const nextId = (): string => `00000000-0000-7000-8000-${String(made++).padStart(12, '0')}`;
  const scope = (scopeId: string): ScopeWindow => {
    const now = under().now();
    return { scopeId, window: { start: now - HOUR, end: now + HOUR } };
  };
  const counter = (scopeId: string, limit: Nano): Counter => ({ ...scope(scopeId), limit });

  const ask = (part: Partial<StoreCall>): Promise<StoreReply | StaleEpoch> => {
    const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
    const { store, epoch } = under();
    return store.call({ epoch, ...nothing, ...part });
  };
  const call = async (part: Partial<StoreCall>): Promise<StoreReply> => {
    const reply = await ask(part);
    if (reply.outcome !== 'done') throw new Error('the epoch is stale');
    return reply;
  };
  const operation = (amount: Nano, counters: ReadonlyArray<Counter>, more: Partial<HoldOperation> = {}) => ({
    ...{ id: nextId(), amount, minAmount: amount, counters, deadline: under().now() + HOUR, lease: LEASE },
    note: {
      charges: counters.map(({ scopeId, window }) => ({ scopeId, window })),
      ...{ model: 'small', identifier: 's-1' },
    },
    ...more,
  });
  const take = async (of: HoldOperation): Promise<HoldAnswer | undefined> => (await call({ holds: [of] })).holds[0];
  const load = (spent: Nano, ...counters: ScopeWindow[]) =>
    call({ loads: counters.map(({ scopeId, window }) => ({ scopeId, window, spent })) });
  const settle = async (id: string, cost: Nano) => (await call({ settles: [{ id, cost }] })).settles[0];
  const release = async (id: string) => (await call({ releases: [{ id, lease: LEASE }] })).releases[0];
  const spent = async (of: ScopeWindow) => (await under().store.read([of]))[0];

  return { nextId, scope, counter, ask, call, operation, take, load, settle, release, spent };
}
