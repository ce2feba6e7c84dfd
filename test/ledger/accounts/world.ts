// Faults and events of the model: deaths, wipes, snapshots, late calls, falling limits, edges of windows.
import { isPlanted } from './flaws.ts';
import { processOf } from './initial.ts';
import { leave } from './process.ts';
import { loseOfGone } from './rejoin.ts';
import { copyStore, type Go, type Scene, type State } from './state.ts';
import { call } from './store.ts';
import { at, isWorker, requestsOf, zeros } from './sums.ts';

export function ofWorld(scene: Scene, state: State, go: Go): void {
  const { left, processes } = state;
  processes.forEach(({ gone, pending, out }, who) => {
    if (gone === 'stopped' && left.crashed > 0 && !isWorker(scene, who))
      go(`a successor of ${who} starts on its disk`, (to) => {
        to.left.crashed -= 1;
        at(to.processes, who).gone = '';
        leave(scene, to, who);
      });
    if (gone !== '') return;
    const late = (to: State): void => {
      if (pending === null || to.left.lost === 0) return;
      to.left.lost -= 1;
      to.late.push(pending);
    };
    if (left.died > 0)
      go(`${who} dies with its disk`, (to) => {
        to.left.died -= 1;
        late(to);
        die(scene, to, who);
      });
    // A Worker may leave it at what was charged, even of a request that it never served, or at what the store has lost.
    if (isWorker(scene, who) && out) go(`${who} gives up`, (to) => die(scene, to, who));
    if (left.crashed > 0 && !isWorker(scene, who))
      go(`${who} dies, and its disk stays`, (to) => {
        to.left.crashed -= 1;
        late(to);
        for (const of of requestsOf(scene, to, who, 'live'))
          Object.assign(at(to.requests, of), { stage: 'done', atSize: true });
        leave(scene, to, who);
        forgetCount(to, who);
        at(to.processes, who).closing = null;
      });
  });
  if (left.wiped > 0)
    go('the store is wiped', (to) => {
      to.left.wiped -= 1;
      to.store = { epoch: 0, counters: zeros(scene).map(() => null), accounts: {}, finished: [] };
      to.stale = false;
      loseOfGone(to);
    });
  if (left.restored > 0 && state.saved === null)
    go('the store is saved', (to) => {
      Object.assign(to, { saved: copyStore(to.store), ahead: [] });
    });
  if (left.restored > 0 && state.saved !== null)
    go('the store comes back as it was saved', (to) => {
      to.left.restored -= 1;
      to.store = copyStore(to.saved ?? to.store);
      Object.assign(to, { saved: null, stale: to.ahead.length > 0, ahead: [], excused: true, late: [] });
      loseOfGone(to);
    });
  if (left.lowered > 0)
    go('a limit falls', (to) => {
      to.left.lowered -= 1;
      to.limits = to.limits.map((limit) => limit - 1);
    });
  if (left.edges > 0)
    go('the window ends', (to) => {
      to.left.edges -= 1;
      to.window += 1;
    });
  state.late.forEach((one, index) => {
    for (const isLate of [false, true])
      go(`a call of account ${one.account} arrives ${isLate ? 'too late' : 'late'}`, (to) => {
        to.late.splice(index, 1);
        call(scene, to, one, isLate);
      });
  });
  ofDrops(scene, state, go);
  // Somebody must be there to close the accounts of those who are gone.
  if (processes.every(({ gone }) => gone !== ''))
    go('a process starts', (to) => {
      const process = processOf(scene, processes.length);
      const { epoch } = to.books;
      to.processes.push({
        ...process,
        out: true,
        epoch,
        joined: 0,
        account: -1,
        accounts: [],
        limits: [...to.limits],
        known: [...to.limits],
        window: to.window,
      });
    });
}

/** A counter leaves the store when its window is over and no account has anything in it. */
function ofDrops(scene: Scene, state: State, go: Go): void {
  const { counters, accounts } = state.store;
  for (const [index, counter] of counters.entries()) {
    const isOver = Math.floor(index / scene.limits.length) < state.window;
    const isUsed = Object.values(accounts).some(
      ({ escrow, risk, unbooked }) =>
        at(escrow, index) + at(risk, index) > 0 || unbooked.some(({ sums }) => at(sums, index) !== 0),
    );
    const isEarly =
      isPlanted(scene, 'a counter leaves while its window lasts') && counter !== null && counter.held === 0;
    if (counter === null || !((isOver && !isUsed) || isEarly)) continue;
    go(`counter ${index} leaves the store`, (to) => {
      to.store.counters[index] = null;
    });
  }
}

/** What a process knows of the store goes with it. */
function forgetCount(to: State, who: number): void {
  to.ahead = to.ahead.filter((one) => one !== who);
}

function die(scene: Scene, to: State, who: number): undefined {
  const { books } = to;
  forgetCount(to, who);
  const process = at(to.processes, who);
  const { isForgotten } = process;
  // A hold that was asked for may have been granted: then it is charged like any other.
  const isAsked = (of: number): boolean => process.out || process.pending?.request === of;
  for (const of of requestsOf(scene, to, who, 'new', 'refused'))
    at(to.requests, of).stage = isAsked(of) ? 'gone live' : 'refused';
  for (const of of requestsOf(scene, to, who, 'live')) {
    const request = at(to.requests, of);
    const mayHaveGrown = process.pending?.request === of && process.pending.isGrowth;
    Object.assign(request, { stage: 'gone live', isGrown: request.isGrown || mayHaveGrown });
  }
  for (const of of requestsOf(scene, to, who, 'done', 'sent', 'told')) {
    const { isEnded } = at(to.requests, of);
    const isBooked = books.settled.includes(of);
    const stage = isBooked ? 'booked' : isEnded ? 'gone done' : 'gone live';
    Object.assign(at(to.requests, of), { stage, isEnded: isBooked });
  }
  Object.assign(process, {
    gone: 'died',
    out: false,
    pending: null,
    read: null,
    closing: null,
    corrections: [],
    sealed: 0,
    ending: '',
    isForgotten: false,
  });
  if (!isForgotten || to.lost.includes(who)) return;
  to.lost.push(who);
  to.excused = true;
}
