// The scene of the promises of rates: holds of zero that use rates, and their ends.
import type { RateLimit, RateRequest } from './rates.ts';
import { LEASE, type StoreUnderTest, storeScene } from './store.scene.promises.ts';
import type { HoldOperation } from './store.ts';

export const rated = (limits: ReadonlyArray<RateLimit>, more: Partial<RateRequest> = {}): RateRequest => ({
  ...{ tokens: 10, limits, entries: [] },
  ...more,
});

/** The scene over one store, as `storeScene`. */
export function rateScene(under: () => StoreUnderTest) {
  const { counter, call, operation: holdOf, take } = storeScene(under);

  const operation = (rates: RateRequest, more: Partial<HoldOperation> = {}): HoldOperation =>
    holdOf(1n, more.counters ?? [], { rates, ...more });
  const takeMany = async (count: number, rates: RateRequest) => {
    const holds = Array.from({ length: count }, () => operation(rates));
    return (await call({ holds })).holds.map(({ outcome }) => outcome);
  };
  const settle = (id: string, tokens?: number) =>
    call({ settles: [{ id, cost: 0n, ...(tokens === undefined ? {} : { tokens }) }] });
  const release = (id: string, called?: true) =>
    call({ releases: [{ id, lease: LEASE, ...(called === undefined ? {} : { called }) }] });

  return { counter, call, operation, take, takeMany, settle, release };
}
