// Steps of a process of the model.

import { rejoin } from './rejoin.ts';
import { type Go, REQUESTS, type State } from './state.ts';
import { forgetIn, fresh, vacate } from './store.ts';
import { amountOf, answered, at, exact, heldIn, isBehind, isBooked, isHeardBy, name, partsOf, sumsOf } from './sums.ts';

export function ofProcess(state: State, who: number, go: Go): void {
  const process = at(state.processes, who);
  if (process.dead) return;
  const { store, books } = state;
  const isHeard = isHeardBy(state, who);
  const wants = state.requests.some(
    ({ stage }, of) => REQUESTS[of]?.by === who && (stage === 'new' || stage === 'settling'),
  );
  if (!process.out && isHeard) {
    if (!store.loaded && wants && books.lock < 0)
      go(`${who} reads the sums`, (to) => {
        const booked = store.records.flatMap((record, of) =>
          partsOf(of, record).flatMap(({ kind }) => (isBooked(state, of, kind) ? [name(of, kind)] : [])),
        );
        Object.assign(to.books, { lock: who, read: { sums: sumsOf(state), booked } });
        return [];
      });
    // Only expiries are reported to every process.
    store.records.forEach((record, of) => {
      if (record?.state !== 'expired' || record.known) return;
      if (process.unbooked.some((entry) => entry.of === of && entry.kind === 'expired')) return;
      go(`${who} is told of the end of ${of}’s lease`, (to) => {
        answered(to, who);
        at(to.processes, who).unbooked.push({ of, kind: 'expired', cost: record.amount, epoch: process.epoch });
        return [];
      });
    });
  }
  // An audit carries no count of calls.
  if (!process.out && store.epoch === process.epoch) {
    if (process.suspectCounters && store.loaded && books.lock < 0)
      go(`${who} audits`, (to) => {
        const spent = exact(to, sumsOf(to), (of, kind) => isBooked(to, of, kind));
        const by = spent.map((wanted, scope) => wanted - at(to.store.spent, scope));
        to.store.spent = spent;
        at(to.processes, who).suspectCounters = false;
        return [{ call: 'adjust', epoch: process.epoch, by }];
      });
    for (const [of, { moved, heard, stage }] of state.requests.entries()) {
      const ended = at(books.entries, of).expired;
      const isLive = moved && heard && /^(held|settling|releasing)$/.test(stage) && REQUESTS[of]?.by === who;
      if (!isLive || ended === undefined || at(store.records, of)?.state !== 'held' || books.lock >= 0) continue;
      go(`${who} tells that ${of}’s lease had ended`, (to) => {
        const spent = exact(to, sumsOf(to), (each, kind) => isBooked(to, each, kind));
        const by = spent.map((wanted, scope) => wanted - at(to.store.spent, scope));
        if (to.store.loaded) to.store.spent = spent;
        vacate(to.store, of);
        to.store.records[of] = { ...fresh('expired', ended), known: true };
        const { epoch } = process;
        const adjust = { call: 'adjust', epoch, by } as const;
        const register = { call: 'register', epoch, of: [of], amounts: [amountOf(of)], charged: [ended] } as const;
        return to.store.loaded ? [adjust, register] : [register];
      });
    }
    if (process.suspectCounters && !store.loaded)
      go(`${who} has nothing to audit`, (to) => {
        at(to.processes, who).suspectCounters = false;
        return [];
      });
  }
  if (books.lock === who)
    go(`${who} loads`, (to) => {
      const { sums, booked } = books.read ?? { sums: [], booked: [] };
      Object.assign(to.books, { lock: -1, read: null });
      if (!isHeard || process.out) {
        at(to.processes, who).out = true;
        return [];
      }
      answered(to, who);
      if (to.store.loaded) return [];
      to.store.spent = exact(to, sums, (of, kind) => booked.includes(name(of, kind)));
      to.store.held = heldIn(to);
      to.store.loaded = true;
      return [{ call: 'load', epoch: process.epoch, sums, booked }];
    });
  if (process.unbooked.length > 0 && books.lock < 0)
    go(`${who} books`, (to) => {
      const one = at(to.processes, who);
      for (const entry of one.unbooked) {
        const kinds = at(to.books.entries, entry.of);
        const isReRegistered = at(to.requests, entry.of).moved;
        const ended = kinds.expired ?? 0;
        if (entry.isRefund === true) {
          if (ended === 0) continue;
          kinds.correction ??= -ended;
          one.unforgotten.push(name(entry.of, entry.kind));
          one.suspectCounters = true;
          continue;
        }
        // A re-registered hold may have expired, and another process may have booked that meanwhile.
        const wasEnded = entry.kind === 'settled' && isReRegistered && ended > 0;
        const kind = wasEnded ? 'correction' : entry.kind;
        if (kind !== 'expired' || kinds.settled === undefined)
          kinds[kind] ??= wasEnded ? entry.cost - (kinds.expired ?? 0) : entry.cost;
        one.unforgotten.push(name(entry.of, entry.kind));
        // PostgreSQL reports in the same transaction whether the epoch of the count is over.
        if (entry.epoch !== to.books.epoch || wasEnded) one.suspectCounters = true;
      }
      one.unbooked = [];
      one.unforgotten = [...new Set(one.unforgotten)].sort();
      one.marked ||= one.since;
      if (to.stale?.behind[who] === true) to.stale = { ...to.stale, marked: true };
      return [];
    });
  drains(state, who, go);
  if (process.unforgotten.length > 0)
    go(`${who} lets the store forget`, (to) => {
      const { unforgotten } = process;
      at(to.processes, who).unforgotten = [];
      forgetIn(to, unforgotten);
      return [{ call: 'forget', names: unforgotten }];
    });
  if (!process.out && (books.epoch !== process.epoch || !isHeard || isBehind(state, who)))
    go(`${who} notices`, (to) => {
      at(to.processes, who).out = true;
      return [];
    });
  if (process.out) rejoin(state, who, go);
}

/** Drains records of a dead process; like a sweep, also records that a snapshot brought back and PostgreSQL already has. */
export function drains(state: State, who: number, go: Go): void {
  const { store, books, processes } = state;
  const process = at(processes, who);
  const found = store.records.flatMap((record, of) => {
    const isDead = at(processes, REQUESTS[of]?.by ?? 0).dead;
    return partsOf(of, record).filter(({ kind }) => isDead || (state.returned && isBooked(state, of, kind)));
  });
  const isThere = !process.out && isHeardBy(state, who);
  if (isThere && process.drained.length === 0 && found.length > 0)
    go(`${who} reads what is left in the store`, (to) => {
      const one = at(to.processes, who);
      one.drained = found.map(({ of, kind, cost }) => ({ of, kind, cost, epoch: store.epoch }));
      if (to.saved !== null) one.seen = processes.map(({ since }) => since);
      return [];
    });
  if (process.drained.length > 0 && books.lock < 0)
    go(`${who} books what was left`, (to) => {
      const one = at(to.processes, who);
      for (const { of, kind, cost, epoch } of one.drained) {
        const kinds = at(to.books.entries, of);
        // A hold that ended in two epochs is charged once.
        if (kind === 'settled' && kinds.expired !== undefined) kinds.correction ??= cost - kinds.expired;
        else if (kind !== 'expired' || kinds.settled === undefined) kinds[kind] ??= cost;
        if (epoch !== to.books.epoch) one.suspectCounters = true;
        one.unforgotten.push(name(of, kind));
      }
      one.drained = [];
      if (to.saved !== null)
        for (const [index, other] of to.processes.entries()) other.marked ||= one.seen[index] === true;
      else if (to.returned && one.seen.includes(true))
        to.stale = { behind: to.stale?.behind ?? [false, false], marked: true };
      one.seen = [];
      one.unforgotten = [...new Set(one.unforgotten)].sort();
      return [];
    });
}
