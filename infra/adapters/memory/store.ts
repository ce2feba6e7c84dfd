// How are counters and holds kept when one process serves an instance alone? In its memory; PostgreSQL and the outbox outlive it.
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Expired, Store, StoreCall, StoreReply } from '#core/ports/store.ts';
import { type Counters, createCounters } from './counters.ts';
import { createHolds, type Holds } from './holds.ts';
import { createRates, type Rates } from './rates.ts';

/** A store that is never wiped while its process lives has one epoch. */
export const MEMORY_EPOCH = 1;

/** For one process only. Every call is one synchronous step, which is what a script is elsewhere. */
export function createMemoryStore({ clock }: { readonly clock: Clock }): Store {
  const counters = createCounters();
  const rates = createRates();
  const holds = createHolds(counters, rates);
  return {
    async call(call) {
      const now = clock.now();
      if (call.epoch !== MEMORY_EPOCH) return { outcome: 'epoch', now, epoch: MEMORY_EPOCH };
      return run(call, now, { counters, holds, rates });
    },
    async forget(ids) {
      const now = clock.now();
      for (const id of ids) holds.forget(id, now);
    },
    async read(of) {
      holds.sweep(clock.now());
      return of.map((counter) => counters.find(counter)?.spent);
    },
  };
}

interface Parts {
  readonly counters: Counters;
  readonly holds: Holds;
  readonly rates: Rates;
}

/** Leases are ended after settles, releases and renewals: what arrives in time by call is in time. */
function run(call: StoreCall, now: Millis, { counters, holds, rates }: Parts): StoreReply {
  const settles = call.settles.map((operation) => holds.settle(operation, now));
  const releases = call.releases.map((operation) => holds.release(operation, now));
  for (const renewal of call.renewals) holds.renew(renewal, now);
  holds.sweep(now);
  counters.sweep(now);
  rates.sweep(now);
  for (const load of call.loads) {
    const loaded = counters.load(load);
    if (loaded !== undefined) holds.join(loaded);
  }
  const answers = call.holds.map((operation) => holds.take(operation, now));
  const moves = (call.moves ?? []).map((operation) => holds.move(operation, now));
  const expired: ReadonlyArray<Expired> = holds.expired();
  return { outcome: 'done', now, settles, releases, holds: answers, moves, expired };
}
