// Laws of the account model: the violation of a state, if any (LEDGER 1).
import type { Scene, State } from './state.ts';
import { at, costOf, holdOf, isZero, plus, spread, sumsOf, zeros } from './sums.ts';

/** The violation of this state, if any. */
export function verify(scene: Scene, state: State): string | undefined {
  const { store, excused } = state;
  if (Object.values(store.accounts).some(({ unbooked }) => unbooked.length > 2)) return 'three batches are unbooked';
  if (!excused && store.counters.some((counter) => counter !== null && counter.held < 0))
    return 'a counter holds less than nothing';
  return isQuiet(state) ? verifyEnd(scene, state) : undefined;
}

/** Whether nothing is in flight, and nothing waits for anything. */
export function isQuiet({ store, books, processes, requests, late, stale, unaudited }: State): boolean {
  return (
    processes.some(({ gone }) => gone === '') &&
    requests.every(({ stage }) => /^(booked|refused|released|gone .*)$/.test(stage)) &&
    processes.every(
      (one, who) =>
        one.closing === null &&
        (one.gone !== '' ||
          (!one.out &&
            !one.asleep &&
            one.pending === null &&
            one.sealed === 0 &&
            one.ending === '' &&
            one.read === null &&
            one.epoch === store.epoch)) &&
        one.corrections.length === 0 &&
        one.accounts.every((id) => store.accounts[id] === undefined || (one.gone === '' && one.account === id)) &&
        who >= 0,
    ) &&
    Object.values(store.accounts).every(({ escrow, risk, closing }) => isZero(escrow) && isZero(risk) && !closing) &&
    store.epoch === books.epoch &&
    books.open &&
    late.length === 0 &&
    !stale &&
    !unaudited
  );
}

function verifyEnd(scene: Scene, state: State): string | undefined {
  const { store, lost } = state;
  const sums = sumsOf(scene, state);
  let [least, most] = [zeros(scene), zeros(scene)];
  state.requests.forEach(({ stage, window }, of) => {
    const { by } = at(scene.requests, of);
    const cost = costOf(scene, state.requests, of);
    const isLost = lost.includes(by);
    if (stage === 'booked')
      [least, most] = [plus(least, spread(scene, of, window, cost)), plus(most, spread(scene, of, window, cost))];
    if (stage === 'gone done' && !isLost)
      least = plus(least, spread(scene, of, window, at(scene.requests, of).streamed ?? cost));
    const isUntold = stage === 'released' && at(state.processes, by).gone === 'died';
    if (stage === 'gone done' || stage === 'gone live' || isUntold)
      most = plus(most, spread(scene, of, window, holdOf(scene, state.requests, of)));
  });
  for (const [index, sum] of sums.entries()) {
    if (sum < at(least, index)) return `counter ${index}: ${sum} is booked of at least ${least[index]}`;
    if (sum > at(most, index)) return `counter ${index}: ${sum} is booked of at most ${most[index]}`;
    const counter = at(store.counters, index);
    if (counter !== null && counter.held !== 0) return `counter ${index} holds ${counter.held} for nobody`;
    const isCurrent = Math.floor(index / scene.limits.length) === state.window;
    if (isCurrent && counter !== null && counter.spent !== sum)
      return `counter ${index} shows ${counter.spent}, its entries ${sum}`;
  }
  return undefined;
}
