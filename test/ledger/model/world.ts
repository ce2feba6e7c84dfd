// Faults of the model: wipes, snapshots, deaths.
import { copyStore, emptyStore, type Go, REQUESTS, type State } from './state.ts';
import { at, isSettledInBooks, loseOfDead } from './sums.ts';

export function ofWorld(state: State, go: Go): void {
  if (state.left.wiped > 0)
    go('the store is wiped', (to) => {
      to.left.wiped -= 1;
      to.store = emptyStore(0);
      to.stale = null;
      loseOfDead(to);
      return [{ call: 'wipe' }];
    });
  if (state.left.restored > 0 && state.saved === null)
    go('the store is saved', (to) => {
      to.saved = copyStore(to.store);
      for (const one of to.processes) Object.assign(one, { since: false, marked: false, seen: [] });
      return [{ call: 'save' }];
    });
  if (state.left.restored > 0 && state.saved !== null)
    go('the store comes back as it was saved', (to) => {
      to.left.restored -= 1;
      to.store = copyStore(to.saved ?? to.store);
      to.saved = null;
      to.returned = true;
      const behind = to.processes.map(({ since, dead }) => since && !dead);
      const marked = to.processes.some((one) => one.marked);
      to.stale = behind.includes(true) || marked ? { behind, marked } : null;
      // Connections broke: calls and answers in flight are lost.
      for (const one of to.requests) Object.assign(one, { lateHold: 0, lateSettle: 0 });
      for (const one of to.processes) Object.assign(one, { since: false, marked: false });
      loseOfDead(to);
      return [{ call: 'restore' }];
    });
  for (const [who, { dead }] of state.processes.entries())
    if (state.left.died > 0 && !dead)
      go(`${who} is gone for good, and its disk`, (to) => {
        to.left.died -= 1;
        die(to, who);
        return [];
      });
}

export function die(to: State, who: number): void {
  Object.assign(at(to.processes, who), {
    ...{
      dead: true,
      out: false,
      epoch: 0,
      joined: 0,
      unbooked: [],
      unforgotten: [],
      suspectCounters: false,
      drained: [],
    },
  });
  if (to.books.lock === who) Object.assign(to.books, { lock: -1, read: null });
  for (const [of, one] of to.requests.entries()) {
    if (REQUESTS[of]?.by !== who) continue;
    if (one.stage === 'new') one.stage = 'refused';
    if (/^(held|settling|releasing)$/.test(one.stage)) one.stage = `gone ${one.stage}`;
    const record = at(to.store.records, of);
    const isKept = record?.state === 'settled' || (record?.state === 'expired' && record.late !== '');
    const isTold = one.stage === 'settled' || (one.stage === 'released' && one.moved);
    if (isTold && !isKept && !isSettledInBooks(to, of)) one.lost = true;
  }
  loseOfDead(to, to.stale !== null);
}
