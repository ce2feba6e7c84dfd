// Ends of processes: a clean stop, with the store or without it, and a Worker, which stops after its request (LEDGER 3, 7).
import { isPlanted } from './flaws.ts';
import { idleOf, leave, send } from './process.ts';
import type { Go, Process, Scene, State } from './state.ts';
import { answeredOf, at, isWorker, requestsOf, tellCount } from './sums.ts';

/**
 * The process tells the rest, where the store answers; one transaction books what it has, told or not, and closes the account's row, in any
 * epoch; a last call returns the escrow, and the store forgets the account. One that owes an answer or has not told all is left to closers.
 */
export function ofStopping(scene: Scene, state: State, who: number, go: Go): void {
  const { gone, out, ending, pending } = at(state.processes, who);
  if (gone !== '' || out || requestsOf(scene, state, who, 'new', 'live').length > 0) return;
  if (ending === 'closed') {
    ofLastCall(scene, state, who, go);
    return;
  }
  if (state.left.stopped === 0 && ending === '' && !isWorker(scene, who)) return;
  const beginning =
    (next: Process['ending']): Go =>
    (name, change) =>
      go(name, (to) => {
        begin(scene, to, who, next);
        return change(to);
      });
  const begun = beginning(ending === 'tried' ? 'tried' : 'begun');
  const isTold = pending === null && requestsOf(scene, state, who, 'done').length === 0;
  if (pending === null && !isTold && ending !== 'tried') ofRest(scene, state, who, begun);
  if (isWorker(scene, who) && isTold && !hasHeld(scene, state, who)) ofLastCall(scene, state, who, beginning('closed'));
  else ofLastBatch(scene, state, who, begun, isTold);
  if (isTold && isPlanted(scene, 'an account is forgotten before its last batch is booked'))
    ofLastCall(scene, state, who, begun);
}

function begin(scene: Scene, to: State, who: number, next: Process['ending']): void {
  const process = at(to.processes, who);
  if (process.ending === '' && !isWorker(scene, who)) to.left.stopped -= 1;
  Object.assign(process, { ending: next, closing: null });
}

function ofRest(scene: Scene, state: State, who: number, go: Go): void {
  const returned = idleOf(scene, state, who).map((value) => Math.max(0, value));
  send(scene, state, who, 'tells the rest', () => ({ returned }), go);
}

function ofLastCall(scene: Scene, state: State, who: number, go: Go): void {
  const { pending, escrow } = at(state.processes, who);
  if (pending === null) send(scene, state, who, 'sends its last call', () => ({ returned: escrow, isLast: true }), go);
}

/** Whether a Worker has anything to close: an account that never held anything has no row. */
const hasHeld = (scene: Scene, state: State, who: number): boolean =>
  at(state.processes, who).corrections.length > 0 ||
  requestsOf(scene, state, who, 'told').length > 0 ||
  (requestsOf(scene, state, who, 'released').length > 0 &&
    !isPlanted(scene, 'a Worker that releases its hold closes no account'));

function ofLastBatch(scene: Scene, state: State, who: number, go: Go, isTold: boolean): void {
  const { account, batch } = at(state.processes, who);
  const row = state.books.rows[account];
  if (row?.closed && row.last !== batch) {
    go(`${who} cannot book the rest`, (to) => leave(scene, to, who));
    return;
  }
  go(`${who} books the rest and closes its account`, (to) => {
    bookRest(scene, to, who);
    const process = at(to.processes, who);
    if (process.pending !== null && to.left.lost > 0) {
      to.left.lost -= 1;
      to.late.push(process.pending);
    }
    for (const of of requestsOf(scene, to, who, 'done', 'sent', 'told'))
      Object.assign(at(to.requests, of), { stage: 'booked', isEnded: true });
    const next = isTold ? { ending: 'closed' } : { ending: '', gone: 'stopped' };
    Object.assign(process, { pending: null, read: null, closing: null, corrections: [], sealed: 0, ...next });
  });
  if (state.left.lost > 0)
    go(`${who} books the rest and closes its account, and never hears`, (to) => {
      to.left.lost -= 1;
      bookRest(scene, to, who);
      at(to.processes, who).ending = 'tried';
    });
}

/** One transaction. Where the store has lost the account, counters may have been loaded without what is booked now: the next sweep finds the difference. */
function bookRest(scene: Scene, to: State, who: number): void {
  const { books } = to;
  tellCount(to, who);
  const isTold = requestsOf(scene, to, who, 'done', 'sent').length === 0;
  const { account, epoch, batch, corrections } = at(to.processes, who);
  books.settled = [...new Set([...books.settled, ...requestsOf(scene, to, who, 'done', 'sent', 'told')])].sort();
  books.corrected = [...new Set([...books.corrected, ...corrections.map((one) => one.account)])].sort();
  books.rows[account] = { last: batch, no: answeredOf(at(to.processes, who)), closed: true };
  if (books.epoch === epoch && (isTold || to.store.accounts[account] !== undefined)) return;
  to.excused = true;
  to.unaudited = !isPlanted(scene, 'nobody sweeps after a stop that the store knows nothing of');
}
