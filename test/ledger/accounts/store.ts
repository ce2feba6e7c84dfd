// The store of the model: what its script does with one numbered call, a load, and the steps of a closing (LEDGER 3 to 6).
import { isPlanted } from './flaws.ts';
import type { Account, Call, Scene, State, Sums } from './state.ts';
import { at, isZero, plus, zeros } from './sums.ts';

export type Reply =
  | { readonly outcome: 'done'; readonly granted: boolean; readonly escrow: Sums }
  | { readonly outcome: 'absent' | 'window' | 'stale' | 'epoch' };

/** One call. `isLate`: its deadline on the store's clock has passed, so it grants nothing. */
export function call(scene: Scene, state: State, call: Call, isLate = false): Reply {
  const { store, window } = state;
  if (store.epoch !== call.epoch) return { outcome: 'epoch' };
  const found = store.accounts[call.account];
  if (
    found === undefined &&
    (call.no !== 1 ||
      (store.finished.includes(call.account) && !isPlanted(scene, 'a closed account is opened again by a late call')))
  )
    return { outcome: 'stale' };
  const account: Account = found ?? {
    ...{
      no: 0,
      outcome: 'done',
      granted: false,
      escrow: zeros(scene),
      risk: zeros(scene),
      unbooked: [],
      closing: false,
    },
  };
  if (account.closing && !isPlanted(scene, 'closed accounts go on')) return { outcome: 'stale' };
  if (call.no === account.no && !isPlanted(scene, 'a repeated call is done again')) return answer(account);
  if (call.no !== account.no + 1 && !(call.no === account.no && isPlanted(scene, 'a repeated call is done again')))
    return { outcome: 'stale' };
  store.accounts[call.account] = account;
  Object.assign(account, { no: call.no, outcome: 'done', granted: false });
  const named = [call.spend, call.wanted];
  const absent = store.counters.some(
    (counter, index) => counter === null && named.some((sums) => at(sums, index) !== 0),
  );
  if (absent && isPlanted(scene, 'absent is zero'))
    store.counters.forEach((counter, index) => {
      if (counter === null) store.counters[index] = { spent: 0, held: 0 };
    });
  else if (absent) return answer(Object.assign(account, { outcome: 'absent' }));
  if (!isZero(call.wanted) && call.window !== window && !call.isGrowth)
    return answer(Object.assign(account, { outcome: 'window' }));
  settle(store, account, call);
  if (!isZero(call.registered)) take(store, account, call.registered);
  for (const id of call.forgotten) {
    freeze(scene, state, id);
    finish(state, id, true);
  }
  if (!isZero(call.wanted) && !isLate && hasRoom(store, call)) {
    take(store, account, call.wanted);
    account.granted = true;
    if (call.request >= 0) account.risk = plus(account.risk, call.wanted);
  }
  if (call.isLast) {
    account.closing = true;
    finish(state, call.account, false);
  }
  return answer(account);
}

const answer = ({ outcome, granted, escrow }: Account): Reply =>
  outcome === 'done' ? { outcome, granted, escrow: [...escrow] } : { outcome };

/** Spend leaves escrow, also where it is more than the escrow; idle escrow goes back; booked batches are dropped. */
function settle(store: State['store'], account: Account, { spend, risk, returned, batch, booked }: Call): void {
  account.unbooked = account.unbooked.filter(({ number }) => number > booked);
  spend.forEach((cost, index) => {
    const counter = store.counters[index];
    const freed = Math.min(at(account.escrow, index), Math.max(0, cost) + at(returned, index));
    account.escrow[index] = at(account.escrow, index) - freed;
    // Only what costs nothing may be told about a counter that is absent.
    if (counter === null || counter === undefined) return;
    counter.spent += cost;
    counter.held -= freed;
  });
  if (!isZero(spend)) {
    const open = account.unbooked.find(({ number }) => number === batch);
    if (open === undefined) account.unbooked.push({ number: batch, sums: [...spend] });
    else open.sums = plus(open.sums, spend);
  }
  account.risk = [...risk];
}

function take(store: State['store'], account: Account, sums: Sums): void {
  sums.forEach((amount, index) => {
    const counter = store.counters[index];
    if (counter !== null && counter !== undefined) counter.held += amount;
  });
  account.escrow = plus(account.escrow, sums);
}

/** All or none. */
const hasRoom = ({ counters }: State['store'], { wanted, limits }: Call): boolean =>
  wanted.every((amount, index) => {
    const counter = at(counters, index);
    return (
      amount === 0 || (counter !== null && counter.spent + counter.held + amount <= at(limits, index % limits.length))
    );
  });

/** Sets absent counters to PostgreSQL's sums, and to what accounts hold; loaded ones stay as they are. */
export function load({ store }: State, sums: Sums): void {
  const accounts = Object.values(store.accounts);
  store.counters.forEach((counter, index) => {
    const held = accounts.reduce((all, { escrow }) => all + at(escrow, index), 0);
    if (counter === null) store.counters[index] = { spent: at(sums, index), held };
  });
}

/** Marks an account: no call of its process is done from now on, and its escrow stays until it is forgotten. The frozen figures. */
export function freeze(scene: Scene, { store }: State, id: number): Account | null {
  const account = store.accounts[id];
  if (account === undefined) {
    if (!store.finished.includes(id)) store.finished.push(id);
    return null;
  }
  if (!account.closing && isPlanted(scene, 'the escrow of a marked account is free'))
    account.escrow.forEach((escrow, index) => {
      const counter = store.counters[index];
      if (counter !== null && counter !== undefined) counter.held -= escrow - Math.min(escrow, at(account.risk, index));
      account.escrow[index] = Math.min(escrow, at(account.risk, index));
    });
  account.closing = true;
  return account;
}

/** Turns what was at risk into spend and forgets the account. Repeating it changes nothing. */
export function finish({ store }: State, id: number, isCharged: boolean): void {
  const account = store.accounts[id];
  if (!store.finished.includes(id)) store.finished.push(id);
  if (account === undefined || !account.closing) return;
  account.escrow.forEach((escrow, index) => {
    const counter = store.counters[index];
    if (counter === null || counter === undefined) return;
    counter.held -= escrow;
    if (isCharged) counter.spent += at(account.risk, index);
  });
  delete store.accounts[id];
}

/**
 * Whether every counter that the account has something in is loaded: else a sum that was read before the charge could be loaded after it.
 * While an epoch is not open nobody reads sums.
 */
export function isLoaded(scene: Scene, { store, books }: State, id: number): boolean {
  const account = store.accounts[id];
  if (account === undefined || !books.open || isPlanted(scene, 'an account is closed in absent counters')) return true;
  const { escrow, risk, unbooked } = account;
  const isUsed = (index: number): boolean =>
    at(escrow, index) + at(risk, index) > 0 || unbooked.some(({ sums }) => at(sums, index) !== 0);
  return store.counters.every((counter, index) => counter !== null || !isUsed(index));
}
