// Laws of the model: the violation of a state, if any.
import { LIMITS, REQUESTS, type State } from './state.ts';
import { amountOf, at, costOf, heldIn, isBehind, partsOf, scopesOf, sumsOf } from './sums.ts';

/** The violation of this state, if any. */
export function verify(state: State): string | undefined {
  const { store, books, processes } = state;
  const isFree = state.excused || state.stale !== null || processes.some(({ slept }) => slept);
  if (store.loaded && !isFree)
    for (const [scope, limit] of LIMITS.entries())
      if (at(store.spent, scope) + at(store.held, scope) > limit && !isDoubled(state, scope))
        return `scope ${scope} is above its limit`;
  for (const [of, kinds] of books.entries.entries()) {
    if (kinds.settled !== undefined && kinds.expired !== undefined) return `${of} was charged twice`;
    if (kinds.correction !== undefined && kinds.expired === undefined) {
      const isReported = processes.some(({ unbooked }) =>
        unbooked.some((entry) => entry.of === of && entry.kind === 'expired'),
      );
      const kept = at(store.records, of)?.state === 'expired';
      if (!isReported && !kept) return `${of} was corrected, and never charged`;
    }
  }
  return isQuiet(state) ? verifyEnd(state) : undefined;
}

/**
 * A late expiry: a process knew of it, the store was wiped, and the hold was registered before the expiry was booked. It counts
 * twice until the store is told, or its settlement is a correction and the counter was audited. No limit is exceeded by it.
 */
export function isDoubled({ store, books, processes, requests }: State, scope: number): boolean {
  return requests.some(({ moved }, of) => {
    if (!moved || !scopesOf(of).includes(scope)) return false;
    const isReported = processes.some(({ unbooked }) =>
      unbooked.some((entry) => entry.of === of && entry.kind === 'expired'),
    );
    if (!isReported && at(books.entries, of).expired === undefined) return false;
    const isKnown = at(store.records, of)?.state === 'expired';
    return !isKnown || processes.some(({ suspectCounters, unbooked }) => suspectCounters || unbooked.length > 0);
  });
}

/**
 * A late expiry of a dead process: it is never settled, its lease ends again in the new epoch, and the counter shows both
 * until the next sweep audits it. It is charged once.
 */
const isTwiceOfDead = ({ books, processes, requests }: State, scope: number): boolean =>
  requests.some(({ moved }, of) => {
    const isDead = at(processes, REQUESTS[of]?.by ?? 0).dead;
    return moved && isDead && scopesOf(of).includes(scope) && at(books.entries, of).expired !== undefined;
  });

/** Whether nothing is in flight. */
export function isQuiet(state: State): boolean {
  const { store, books, processes, requests } = state;
  return (
    requests.every(
      ({ stage, lateHold, lateSettle }) =>
        /^(settled|released|refused|gone .*)$/.test(stage) && lateHold + lateSettle === 0,
    ) &&
    processes.every(
      (one, who) =>
        one.dead ||
        (!one.out &&
          one.epoch === store.epoch &&
          one.unbooked.length + one.unforgotten.length + one.drained.length === 0 &&
          !one.suspectCounters &&
          !isBehind(state, who)),
    ) &&
    store.epoch === books.epoch &&
    books.lock < 0 &&
    store.records.every(
      (record, of) =>
        record === null ||
        record.state === 'released' ||
        (partsOf(of, record).length === 0 && !(record.state === 'held' && at(processes, REQUESTS[of]?.by ?? 0).dead)),
    )
  );
}

function verifyEnd(state: State): string | undefined {
  const { store, books, requests } = state;
  for (const [of, { stage, lost }] of requests.entries()) {
    const charged = Object.values(at(books.entries, of)).reduce((all, cost) => all + cost, 0);
    const wanted: Record<string, number[]> = {
      settled: [costOf(of)],
      'gone held': [amountOf(of)],
      'gone settling': [costOf(of), amountOf(of)],
      'gone releasing': [0, amountOf(of)],
    };
    const isRight = lost ? charged >= 0 && charged <= amountOf(of) : (wanted[stage] ?? [0]).includes(charged);
    if (!isRight) return `${of} is ${stage}, and was charged ${charged}`;
  }
  if (!store.loaded) return undefined;
  const sums = sumsOf(state);
  for (const scope of LIMITS.keys()) {
    if (at(store.held, scope) !== heldIn(state)[scope]) return `scope ${scope} holds more than its live holds`;
    if (store.records.some((record) => record?.state === 'held')) return 'something is held for ever';
    if (at(store.spent, scope) !== sums[scope] && !isTwiceOfDead(state, scope))
      return `scope ${scope} shows ${store.spent[scope]}, its entries ${sums[scope]}`;
  }
  return undefined;
}
