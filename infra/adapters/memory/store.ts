// The store of a process that serves an instance alone: its memory. PostgreSQL and the outbox outlive it.
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Store, StoreCall, StoreReply, UnbookedRecord } from '#core/ports/store.ts';
import { createCounters } from './counters.ts';
import { type Expired, partsOf, type Settled } from './hold-state.ts';
import { createHolds } from './holds.ts';
import { createRates } from './rates.ts';

/** A store that is never wiped while its process lives has one epoch. */
export const MEMORY_EPOCH = 1;

export interface MemoryStoreDependencies {
  readonly clock: Clock;
  /** 0: none yet, as a Redis that is empty. */
  readonly epoch?: number;
}

/** For one process only. Every call is one synchronous step, which is what a script is elsewhere. */
export function createMemoryStore({ clock, epoch = MEMORY_EPOCH }: MemoryStoreDependencies): Store {
  let life = beginLife(epoch);
  return {
    async call(call) {
      const now = clock.now();
      if (call.epoch !== life.epoch) return { outcome: 'epoch', now, epoch: life.epoch };
      if (hasGoneBack(call, life)) return { outcome: 'epoch', now, epoch: life.epoch };
      return run(call, now, life);
    },
    async forget(entries) {
      const now = clock.now();
      for (const entry of entries) life.holds.forget(entry, now);
    },
    async read(of) {
      life.holds.sweep(clock.now());
      return of.map((counter) => life.counters.find(counter)?.spent);
    },
    async begin(wanted) {
      if (life.epoch < wanted) life = beginLife(wanted);
      return life.epoch;
    },
    async survey(of) {
      const now = clock.now();
      life.holds.sweep(now);
      const counters = of.map((counter) => ({
        spent: life.counters.find(counter)?.spent,
        parts: life.holds.partsIn(counter),
      }));
      return { now, counters };
    },
    async unbooked(idleFor, max) {
      const now = clock.now();
      life.holds.sweep(now);
      return { records: unbookedIn(life, now - idleFor, max), calls: callsOf(life), epoch: life.epoch };
    },
    async loaded(from, most) {
      const all = life.counters.all();
      const counters = all.slice(from, from + most).map(({ scopeId, window }) => ({ scopeId, window }));
      return from + most < all.length ? { counters, next: from + most } : { counters };
    },
    async clear() {
      life = beginLife(0);
    },
  };
}

interface Life {
  readonly epoch: number;
  readonly counters: ReturnType<typeof createCounters>;
  readonly holds: ReturnType<typeof createHolds>;
  readonly rates: ReturnType<typeof createRates>;
  /** Calls by process: how many, and when the last came. */
  readonly calls: Map<string, { readonly count: number; readonly at: Millis }>;
}

function beginLife(epoch: number): Life {
  const counters = createCounters();
  const rates = createRates();
  return { epoch, counters, rates, holds: createHolds(counters, rates), calls: new Map() };
}

function hasGoneBack({ from, marks }: StoreCall, { calls }: Life): boolean {
  const countOf = (process: string): number => calls.get(process)?.count ?? 0;
  if (from !== undefined && countOf(from.process) < from.acknowledged) return true;
  return [...(marks ?? [])].some(([process, least]) => countOf(process) < least);
}

/** Leases are ended after settles, releases and renewals: what arrives in time by call is in time. */
function run(call: StoreCall, now: Millis, { counters, holds, rates, calls }: Life): StoreReply {
  const by = call.from?.process;
  const count = by === undefined ? 0 : (calls.get(by)?.count ?? 0) + 1;
  if (by !== undefined) calls.set(by, { count, at: now });
  for (const registration of call.registers ?? []) holds.register(registration, now);
  const settles = call.settles.map((operation) => holds.settle(operation, now, by));
  const releases = call.releases.map((operation) => holds.release(operation, now, by));
  for (const renewal of call.renewals) holds.renew(renewal, now);
  holds.sweep(now);
  counters.sweep(now);
  rates.sweep(now);
  for (const load of call.loads) {
    const loaded = now > (load.deadline ?? now) ? undefined : counters.load(load);
    if (loaded !== undefined) holds.join(loaded, load.booked ?? []);
  }
  for (const { by: difference, deadline, ...of } of call.adjusts ?? []) {
    const counter = counters.find(of);
    if (counter !== undefined && now <= deadline) counter.spent += difference;
  }
  const answers = call.holds.map((operation) => holds.take(operation, now));
  const moves = (call.moves ?? []).map((operation) => holds.move(operation, now));
  return { outcome: 'done', now, calls: count, settles, releases, holds: answers, moves, expired: holds.expired() };
}

const callsOf = ({ calls }: Life) => new Map([...calls].map(([process, { count }]) => [process, count]));

function unbookedIn({ holds, calls }: Life, before: Millis, most: number): UnbookedRecord[] {
  const records: UnbookedRecord[] = [];
  const isSilent = (by: string | undefined): boolean => (calls.get(by ?? '')?.at ?? 0) <= before;
  for (const [id, state] of holds.unbooked()) {
    if (records.length >= most) break;
    for (const part of partsOf(id, state)) {
      const { since, by, settlement } = countedAs(part.kind, state);
      if (since > before || !isSilent(by)) continue;
      records.push({ ...part, hold: state.note, since, ...(settlement === undefined ? {} : { settlement }) });
    }
  }
  return records;
}

/** Nobody's: the end of a lease. */
function countedAs(kind: string, state: Settled | Expired) {
  if (state.state === 'settled') return state;
  return kind === 'correction' && state.late !== undefined
    ? state.late
    : { since: state.since, by: undefined, settlement: undefined };
}
