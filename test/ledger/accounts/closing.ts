// Closing an account whose lease has ended: frozen in the store, charged once in PostgreSQL, forgotten (LEDGER 3).
import { isPlanted } from './flaws.ts';
import { leave } from './process.ts';
import { copyAccount, type Go, type Scene, type State } from './state.ts';
import { finish, freeze, isLoaded } from './store.ts';
import { at, chargeOf, learn, owes, ownerOf, plus, sumsOf, tellCount, zeros } from './sums.ts';

export function ofClosing(scene: Scene, state: State, who: number, go: Go): void {
  const { closing, gone, epoch, out, ending } = at(state.processes, who);
  if (gone !== '' || ending !== '') return;
  const isThere = state.store.epoch === epoch && state.books.epoch === epoch;
  if (closing === null && isThere && !out)
    for (const id of Object.keys(state.store.accounts).map(Number)) {
      const owner = at(state.processes, ownerOf(id));
      // Nobody calls for it any more: its process is gone, or has another account.
      const isEnded = owner.gone !== '' || (!owner.out && owner.account !== id);
      const mayEnd = ownerOf(id) !== who && state.left.slept > 0;
      if (!(isEnded || mayEnd) || !isLoaded(scene, state, id)) continue;
      go(`${who} marks account ${id}`, (to) => {
        if (!isEnded) to.left.slept -= 1;
        // A living process that was silent for a lease may exceed a limit by what it had not told (LEDGER 6).
        if (!isEnded && owes(scene, to, ownerOf(id))) to.excused = true;
        if (!isEnded) at(to.processes, ownerOf(id)).asleep = true;
        mark(scene, to, who, id);
      });
    }
  // Sweeps go on, and one comes after every load that is under way.
  const isReading = state.processes.some(({ read }) => read !== null);
  if (state.unaudited && isThere && !out && state.books.open && !isReading)
    go(`${who} sweeps`, (to) => {
      to.unaudited = false;
      audit(scene, to, who);
    });
  if (closing === null) return;
  const { account, closed, audited } = closing;
  const isEarly = state.books.rows[account]?.early === true;
  const isCharged = state.books.expired[account] !== undefined && !isEarly;
  // A process between two accounts ends the earlier one by the first call of the next.
  const isOwn = ownerOf(account) === who && out;
  // What was absent when the account was marked, before the epoch was open, may be read by now.
  if (!closed && !isLoaded(scene, state, account))
    go(`${who} marks account ${account} again`, (to) => {
      at(to.processes, who).closing = null;
    });
  else if (!closed)
    go(`${who} closes account ${account} in PostgreSQL`, (to) => {
      close(scene, to, who);
    });
  // A process that stopped while the store was away has told less than it booked: its escrow stays until an audit has counted that.
  else if (!isCharged && !audited && !isOwn)
    go(`${who} audits the counters of account ${account}`, (to) => {
      Object.assign(at(to.processes, who), { closing: { ...closing, audited: true } });
      if (to.store.epoch === epoch) audit(scene, to, who);
    });
  else
    go(`${who} forgets account ${account}`, (to) => {
      at(to.processes, who).closing = null;
      if (to.store.epoch === epoch && (!isOwn || isEarly)) finish(to, account, isCharged);
    });
}

export function mark(scene: Scene, to: State, who: number, account: number): void {
  const figures = freeze(scene, to, account);
  if (!isPlanted(scene, 'a marking is no call')) learn(to, who);
  at(to.processes, who).closing = { account, figures: figures && copyAccount(figures), closed: false, audited: false };
}

/** One transaction: charges what is at risk and unbooked, if nobody has closed the account. */
function close(scene: Scene, to: State, who: number): void {
  const { closing, epoch } = at(to.processes, who);
  if (closing === null) return;
  closing.closed = true;
  const { account, figures } = closing;
  to.books.rows[account] ??= { last: 0, no: 0, closed: false };
  const row = to.books.rows[account];
  // A closer of another epoch has figures of a store that is gone: it may close, and not charge.
  if (to.books.epoch !== epoch) {
    at(to.processes, who).closing = null;
    return;
  }
  if (row.closed) {
    if (isPlanted(scene, 'two closers charge an account') && figures !== null)
      to.books.expired[account] = plus(to.books.expired[account] ?? zeros(scene), chargeOf(scene, figures, row.last));
    return;
  }
  // PostgreSQL has booked more than the store ever heard: it has gone back, and shows holds that have ended.
  if (figures !== null && figures.no < row.no && !isPlanted(scene, 'an old snapshot is charged')) {
    leave(scene, to, who);
    at(to.processes, who).closing = null;
    return;
  }
  row.closed = true;
  row.early = !to.books.open && !isPlanted(scene, 'what was charged before an epoch is open is charged again');
  if (!isPlanted(scene, 'PostgreSQL learns no count from a closing')) tellCount(to, who);
  to.books.expired[account] = figures === null ? zeros(scene) : chargeOf(scene, figures, row.last);
}

/** Every counter is set to PostgreSQL's sum, what is told and not booked, and not what a closed account has still at risk. */
export function audit(scene: Scene, to: State, who: number): void {
  if (!isPlanted(scene, 'an audit is no call')) learn(to, who);
  const { rows, expired } = to.books;
  const told = Object.entries(to.store.accounts).reduce(
    (sums, [id, { unbooked, risk }]) => {
      const row = rows[Number(id)] ?? { last: 0, no: 0, closed: false };
      if (row.closed) return expired[Number(id)] === undefined || row.early ? sums : plus(sums, risk, -1);
      return unbooked.filter(({ number }) => number > row.last).reduce((all, batch) => plus(all, batch.sums), sums);
    },
    sumsOf(scene, to),
  );
  to.store.counters.forEach((counter, index) => {
    if (counter !== null) counter.spent = at(told, index);
  });
}
