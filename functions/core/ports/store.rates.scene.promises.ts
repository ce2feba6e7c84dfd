// How do the promises about rates ask a store? Holds of nothing that use rates, and what ends them.
import type { Millis, Nano } from './money.ts';
import type { RateLimit, RateRequest } from './rates.ts';
import type { StoreUnderTest } from './store.promises.ts';
import type { Counter, HoldAnswer, HoldOperation, StoreCall, StoreReply } from './store.ts';

/** Short, so that it ends within a test. */
export const LEASE: Millis = 400;
const HOUR: Millis = 3_600_000;

export const rated = (limits: ReadonlyArray<RateLimit>, more: Partial<RateRequest> = {}): RateRequest => ({
  ...{ tokens: 10, limits, entries: [] },
  ...more,
});

/** `under` is asked anew for each call: a test may make another store. */
export function rateScene(under: () => StoreUnderTest) {
  let made = 0;

  const counter = (scopeId: string, limit: Nano): Counter => {
    const now = under().now();
    return { scopeId, limit, window: { start: now - HOUR, end: now + HOUR } };
  };
  const call = async (part: Partial<StoreCall>): Promise<StoreReply> => {
    const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
    const { store, epoch } = under();
    const reply = await store.call({ epoch, ...nothing, ...part });
    if (reply.outcome !== 'done') throw new Error('the epoch is stale');
    return reply;
  };
  const operation = (rates: RateRequest, more: Partial<HoldOperation> = {}): HoldOperation => {
    const counters = more.counters ?? [];
    const note = {
      ...{ charges: counters.map(({ scopeId, window }) => ({ scopeId, window })) },
      ...{ model: 'small', identifier: 's-1' },
    };
    const sizes = { amount: 1n, least: 1n, deadline: under().now() + HOUR, lease: LEASE };
    made += 1;
    return { id: `rate-${made}`, ...sizes, counters, note, rates, ...more };
  };
  const takeMany = async (count: number, rates: RateRequest) => {
    const holds = Array.from({ length: count }, () => operation(rates));
    return (await call({ holds })).holds.map(({ outcome }) => outcome);
  };
  const take = async (of: HoldOperation): Promise<HoldAnswer | undefined> => (await call({ holds: [of] })).holds[0];
  const settle = (id: string, tokens?: number) =>
    call({ settles: [{ id, cost: 0n, ...(tokens === undefined ? {} : { tokens }) }] });
  const release = (id: string, called?: true) =>
    call({ releases: [{ id, lease: LEASE, ...(called === undefined ? {} : { called }) }] });

  return { counter, call, operation, take, takeMany, settle, release };
}
