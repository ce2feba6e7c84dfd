// The way of a process of the model into an epoch.
import { emptyStore, type Go, REQUESTS, type State } from './state.ts';
import { fresh } from './store.ts';
import { amountOf, answered, at, costOf, isBehind, loseOfDead, scopesOf } from './sums.ts';

export function rejoin(state: State, who: number, go: Go): void {
  const process = at(state.processes, who);
  const { store, books } = state;
  if (books.open && (store.epoch !== books.epoch || isBehind(state, who)))
    go(`${who} raises the epoch`, (to) => {
      Object.assign(to.books, { epoch: books.epoch + 1, open: false });
      return [];
    });
  if (!books.open && store.epoch < books.epoch)
    go(`${who} lets the store begin`, (to) => {
      to.store = emptyStore(books.epoch);
      to.stale = null;
      for (const one of to.processes) one.seen = [];
      loseOfDead(to);
      return [{ call: 'begin', epoch: books.epoch }];
    });
  const isThere = store.epoch === books.epoch;
  if (isThere && process.joined !== books.epoch && process.unbooked.length === 0 && books.lock !== who)
    go(`${who} enters`, (to) => {
      const of = state.requests.flatMap(({ stage, heard }, index) => {
        // A released hold holds nothing, unless its lease ended before.
        const isLive =
          heard &&
          (/^(held|settling)$/.test(stage) ||
            (stage === 'releasing' && at(state.books.entries, index).expired !== undefined));
        return REQUESTS[index]?.by === who && isLive ? [index] : [];
      });
      const amounts = of.map((index) =>
        at(state.requests, index).stage === 'settling' ? costOf(index) : amountOf(index),
      );
      const charged = of.map((index) => at(state.books.entries, index).expired);
      of.forEach((index, place) => {
        if (at(to.store.records, index) !== null) return;
        const ended = charged[place] !== undefined;
        const amount = amounts[place] ?? 0;
        to.store.records[index] = ended ? { ...fresh('expired', charged[place]), known: true } : fresh('held', amount);
        if (!ended && to.store.loaded)
          for (const scope of scopesOf(index)) to.store.held[scope] = at(to.store.held, scope) + amount;
      });
      to.requests.forEach((one, index) => {
        if (REQUESTS[index]?.by === who && one.heard) one.moved = true;
      });
      at(to.processes, who).joined = books.epoch;
      answered(to, who);
      return [{ call: 'register', epoch: books.epoch, of, amounts, charged }];
    });
  const missing = state.processes.filter(({ joined, dead }) => !dead && joined !== books.epoch).length;
  if (isThere && !books.open && process.joined === books.epoch && (missing === 0 || state.left.slept > 0))
    go(`${who} opens`, (to) => {
      to.books.open = true;
      for (const one of to.processes) if (one.joined !== books.epoch) one.slept = true;
      if (missing > 0) to.left.slept -= 1;
      return [];
    });
  if (isThere && books.open && process.joined === books.epoch && !isBehind(state, who))
    go(`${who} goes on`, (to) => {
      Object.assign(at(to.processes, who), { epoch: books.epoch, out: false });
      answered(to, who);
      return [];
    });
}
