// The way of a process that was away, or whose store is gone, into an epoch and an account (LEDGER 3, 6).
import { mark } from './closing.ts';
import { isPlanted } from './flaws.ts';
import { leave, send } from './process.ts';
import type { Go, Scene, State, Sums } from './state.ts';
import { isLoaded } from './store.ts';
import { at, costsOf, holdsOf, isWorker, plus, requestsOf, zeros } from './sums.ts';

export function ofRejoining(scene: Scene, state: State, who: number, go: Go): void {
  const process = at(state.processes, who);
  const { store, books } = state;
  if (process.gone !== '') return;
  if (!process.out) {
    // A heartbeat every 2 s.
    if (process.ending === 'closed') return;
    if (books.epoch !== process.epoch || store.epoch !== process.epoch || state.stale)
      go(`${who} notices that the store has forgotten`, (to) => leave(scene, to, who));
    return;
  }
  if (process.pending !== null || process.closing !== null) return;
  if (books.open && (store.epoch !== books.epoch || state.stale)) {
    go(`${who} raises the epoch`, (to) => {
      Object.assign(to.books, { epoch: books.epoch + 1, open: false });
    });
    return;
  }
  if (!books.open && store.epoch < books.epoch)
    go(`${who} empties the store`, (to) => {
      to.store = { epoch: books.epoch, counters: zeros(scene).map(() => null), accounts: {}, finished: [] };
      to.stale = false;
      loseOfGone(to);
    });
  if (store.epoch !== books.epoch) return;
  const unclosed = process.accounts.filter((id) => id !== process.account && books.rows[id]?.closed !== true);
  for (const id of unclosed.slice(0, 1).filter((one) => isLoaded(scene, state, one)))
    go(`${who} closes its account ${id}`, (to) => {
      at(to.processes, who).epoch = books.epoch;
      mark(scene, to, who, id);
    });
  if (unclosed.length > 0) return;
  const mine = requestsOf(scene, state, who, 'done', 'told').filter((of) => !books.settled.includes(of));
  const back = isPlanted(scene, 'a sleeper takes nothing back') ? [] : backOf(state, who);
  const isAway = books.open || process.joined === books.epoch;
  if (
    process.joined !== books.epoch &&
    (mine.length > 0 || back.length > 0) &&
    (!books.open || isPlanted(scene, 'a process that was away books before it tells'))
  )
    go(`${who} books what it has by ids`, (to) => {
      if (to.books.epoch !== books.epoch) return;
      to.books.settled = [...to.books.settled, ...mine].sort();
      to.books.corrected = [...to.books.corrected, ...back].sort();
      for (const of of mine) Object.assign(at(to.requests, of), { stage: 'booked', isEnded: true });
    });
  if (process.joined !== books.epoch && (isAway || mine.length + back.length === 0)) enter(scene, state, who, back, go);
  if (process.joined === books.epoch && books.open)
    go(`${who} goes on`, (to) => {
      at(to.processes, who).out = false;
    });
  if (process.joined === books.epoch && !books.open) {
    // Nobody waits for a Worker: it has no heartbeat.
    const missing = state.processes.flatMap(({ gone, joined }, other) =>
      gone === '' && joined !== books.epoch ? [isWorker(scene, other)] : [],
    );
    const isAwaited = missing.includes(false);
    if (!isAwaited || state.left.slept > 0)
      go(`${who} opens the epoch`, (to) => {
        to.books.open = true;
        if (missing.length > 0) to.excused = true;
        if (isAwaited) to.left.slept -= 1;
      });
  }
}

/** Accounts whose `expired` entry its process takes back: all that its outbox names. */
const backOf = ({ books, processes }: State, who: number): number[] =>
  at(processes, who).accounts.filter((id) => books.expired[id] !== undefined && !books.corrected.includes(id));

/** The first call of a new account: live holds whatever the limits say, settlements and corrections, of each counter at once. */
function enter(scene: Scene, state: State, who: number, back: number[], go: Go): void {
  const { account, accounts, no } = at(state.processes, who);
  const earlier = accounts.filter((id) => id !== account);
  // What a stop has closed is left to closers, whose audit counts what was booked and never told.
  const charged = earlier.filter(
    (id) =>
      (state.books.expired[id] !== undefined && state.books.rows[id]?.early !== true) ||
      isPlanted(scene, 'an account that a stop has closed is charged'),
  );
  // A counter was absent: the same account asks again.
  const isAgain = account >= 0;
  if (!isAgain && accounts.length === 4) return;
  const id = isAgain ? account : who * 4 + accounts.length;
  const given = back.reduce<Sums>(
    (sums, account) => plus(sums, state.books.expired[account] ?? zeros(scene)),
    zeros(scene),
  );
  const before: Go = (name, change) =>
    go(name, (to) => {
      const opened = { account: id, no: isAgain ? no : 0, epoch: to.books.epoch, accounts: [...earlier, id] };
      Object.assign(at(to.processes, who), opened);
      return change(to);
    });
  const done = requestsOf(scene, state, who, 'done');
  const live = holdsOf(scene, state, requestsOf(scene, state, who, 'live'));
  send(
    scene,
    state,
    who,
    `enters with account ${id}`,
    () => ({
      registered: live,
      spend: plus(costsOf(scene, state, done), given, -1),
      corrected: back,
      forgotten: charged,
    }),
    before,
  );
}

/** Charges that were only in the store and in a process that is gone with its disk. */
export function loseOfGone(to: State): void {
  to.processes.forEach(({ gone, accounts }, who) => {
    const isOpen = accounts.some((id) => to.books.rows[id]?.closed !== true);
    if (gone === '') at(to.processes, who).isForgotten = true;
    if (gone !== 'died' || !isOpen || to.lost.includes(who)) return;
    to.lost.push(who);
    to.excused = true;
  });
}
