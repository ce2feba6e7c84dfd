// Ends of processes: a clean stop, with the store or without it, and a Worker, which stops after its request (LEDGER 3, 7).
import { isPlanted } from './flaws.ts';
import { idleOf, leave, send } from './process.ts';
import type { Go, Scene, State } from './state.ts';
import { finish } from './store.ts';
import { at, isWorker, requestsOf } from './sums.ts';

/**
 * A last call tells the rest, returns the escrow and ends the account in the store, which forgets it at once where nothing is unbooked; one
 * transaction books what it told and closes the account's row; then the store forgets it.
 */
export function ofStopping(scene: Scene, state: State, who: number, go: Go): void {
  const { gone, out, ending } = at(state.processes, who);
  if (gone !== '' || requestsOf(scene, state, who, 'new', 'live').length > 0) return;
  const hasDisk = !isWorker(scene, who);
  const mayStop = state.left.stopped > 0 || ending === 'begun' || !hasDisk;
  const isUntold = ending !== 'told' && ending !== 'closed';
  if (mayStop && isUntold && hasDisk) ofSilence(scene, who, go);
  if (mayStop && isUntold && !out) ofLastCall(scene, state, who, go);
  if (ending === 'told') ofLastBatch(scene, state, who, go);
  if (ending === 'closed')
    go(`${who} forgets its account`, (to) => {
      forget(to, who);
      leaveForGood(scene, to, who);
    });
}

function ofLastCall(scene: Scene, state: State, who: number, go: Go): void {
  const { pending, closing } = at(state.processes, who);
  if (pending !== null || closing !== null) return;
  const part = { returned: idleOf(scene, state, who).map((value) => Math.max(0, value)), isLast: true };
  const begun: Go = (name, change) =>
    go(name, (to) => {
      begin(scene, to, who);
      return change(to);
    });
  send(scene, state, who, 'sends its last call', () => part, begun);
}

function ofLastBatch(scene: Scene, state: State, who: number, go: Go): void {
  if (isPlanted(scene, 'an account is forgotten before its last batch is booked'))
    go(`${who} forgets its account early`, (to) => {
      forget(to, who);
    });
  if (at(state.processes, who).sealed !== 0) return;
  // A Worker that never held anything has no row, and its account is forgotten.
  if (isWorker(scene, who) && !hasHeld(scene, state, who)) go(`${who} ends`, (to) => leaveForGood(scene, to, who));
  else
    go(`${who} books the last batch and closes its account`, (to) => {
      if (!bookLast(scene, to, who)) return leave(scene, to, who);
      at(to.processes, who).ending = 'closed';
      return undefined;
    });
  if (state.left.lost > 0)
    go(`${who} books the last batch and closes its account, and never hears`, (to) => {
      to.left.lost -= 1;
      bookLast(scene, to, who);
    });
}

const hasHeld = (scene: Scene, state: State, who: number): boolean =>
  at(state.processes, who).corrections.length > 0 ||
  requestsOf(scene, state, who, 'told').length > 0 ||
  (requestsOf(scene, state, who, 'released').length > 0 &&
    !isPlanted(scene, 'a Worker that releases its hold closes no account'));

function forget(to: State, who: number): void {
  const { account, epoch } = at(to.processes, who);
  if (to.store.epoch === epoch) finish(to, account, false);
}

function begin(scene: Scene, to: State, who: number): void {
  const process = at(to.processes, who);
  if (process.ending === '' && !isWorker(scene, who)) to.left.stopped -= 1;
  process.ending = 'begun';
}

/** One transaction. False: another has closed the account, or the epoch is over. Repeated, the same again: no other closer books the last batch. */
function bookLast(scene: Scene, to: State, who: number): boolean {
  const { books } = to;
  const { account, epoch, batch, corrections } = at(to.processes, who);
  const row = books.rows[account] ?? { last: 0, closed: false };
  if (row.closed && row.last === batch) return true;
  if (row.closed || books.epoch !== epoch) return false;
  books.rows[account] = { last: batch, closed: true };
  books.settled = [...new Set([...books.settled, ...requestsOf(scene, to, who, 'told')])].sort();
  books.corrected = [...new Set([...books.corrected, ...corrections.map((one) => one.account)])].sort();
  return true;
}

/**
 * SIGTERM while the store is away: one transaction books the rest, told or not, takes back what was charged and closes all accounts. Its account
 * shows closers that an audit is due; where the account is gone, or was charged, the next sweep finds the difference.
 */
function ofSilence(scene: Scene, who: number, go: Go): void {
  go(`${who} stops without the store`, (to) => {
    const process = at(to.processes, who);
    begin(scene, to, who);
    if (process.pending !== null && to.left.lost > 0) {
      to.left.lost -= 1;
      to.late.push(process.pending);
    }
    const { books } = to;
    const rest = requestsOf(scene, to, who, 'done', 'sent', 'told');
    const charged = process.accounts.filter((id) => books.expired[id] !== undefined);
    books.settled = [...new Set([...books.settled, ...rest])].sort();
    books.corrected = [...new Set([...books.corrected, ...charged])].sort();
    for (const id of process.accounts) books.rows[id] = { last: books.rows[id]?.last ?? 0, closed: true };
    if (process.out || books.epoch !== process.epoch || books.expired[process.account] !== undefined)
      Object.assign(to, {
        excused: true,
        unaudited: !isPlanted(scene, 'nobody sweeps after a stop without an account'),
      });
    leaveForGood(scene, to, who);
  });
}

function leaveForGood(scene: Scene, to: State, who: number): undefined {
  for (const of of requestsOf(scene, to, who, 'done', 'sent', 'told'))
    Object.assign(at(to.requests, of), { stage: 'booked', isEnded: true });
  const nothing = { pending: null, read: null, closing: null, corrections: [], sealed: 0, ending: '' };
  Object.assign(at(to.processes, who), { gone: 'stopped', ...nothing });
}
