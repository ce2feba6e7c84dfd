// The store of the model, which handles calls as the script does.
import { LIMITS, type Record_, type State } from './state.ts';
import { amountOf, at, costOf, scopesOf } from './sums.ts';

export function charge(store: State['store'], of: number, cost: number): void {
  if (store.loaded) for (const scope of scopesOf(of)) store.spent[scope] = at(store.spent, scope) + cost;
}

export function vacate(store: State['store'], of: number): void {
  const amount = at(store.records, of)?.amount ?? 0;
  if (store.loaded) for (const scope of scopesOf(of)) store.held[scope] = at(store.held, scope) - amount;
}

export const fresh = (state: Record_['state'], amount = 0, cost = 0): Record_ => ({
  ...{ state, amount, cost, known: false, late: '', corrected: false },
});

/** Operations: each changes the store and answers as the script does. */
export function holdIn(state: State, of: number): string {
  const { store } = state;
  const record = at(store.records, of);
  if (record?.state === 'held' || record?.state === 'settled') return 'held';
  if (record !== null) return 'late';
  if (!store.loaded) return 'absent';
  for (const scope of scopesOf(of)) if (at(LIMITS, scope) - at(store.spent, scope) < amountOf(of)) return 'exceeded';
  for (const scope of scopesOf(of))
    if (at(LIMITS, scope) - at(store.spent, scope) - at(store.held, scope) < amountOf(of)) return 'busy';
  store.records[of] = fresh('held', amountOf(of));
  for (const scope of scopesOf(of)) store.held[scope] = at(store.held, scope) + amountOf(of);
  return 'held';
}

export function settleIn(state: State, of: number, counted: boolean): string {
  const { store } = state;
  const record = at(store.records, of);
  if (record === null) {
    if (!counted) return 'unknown';
    if (!store.loaded) return 'absent';
    store.records[of] = fresh('settled', 0, costOf(of));
    charge(store, of, costOf(of));
    return 'settled';
  }
  if (record.state === 'expired') {
    if (record.late === 'released') return 'released';
    if (record.late === '') {
      Object.assign(record, { late: 'settled', cost: costOf(of) });
      charge(store, of, costOf(of) - record.amount);
    }
    return 'expired';
  }
  if (record.state !== 'held') return record.state;
  vacate(store, of);
  charge(store, of, costOf(of));
  store.records[of] = fresh('settled', 0, costOf(of));
  return 'settled';
}

export function releaseIn(state: State, of: number): string {
  const { store } = state;
  const record = at(store.records, of);
  if (record?.state === 'settled') return 'settled';
  if (record?.state === 'expired') {
    if (record.late === 'settled') return 'settled';
    if (record.late === '') {
      Object.assign(record, { late: 'released', cost: 0 });
      charge(store, of, -record.amount);
    }
    return 'expired';
  }
  if (record?.state === 'held') vacate(store, of);
  store.records[of] = fresh('released');
  return 'released';
}

export function forgetIn(state: State, names: readonly string[]): void {
  for (const each of names) {
    const [number, kind] = each.split(' ');
    const of = Number(number);
    const record = at(state.store.records, of);
    if (record?.state === 'settled') state.store.records[of] = kind === 'settled' ? null : record;
    else if (record?.state === 'expired' && kind === 'correction') record.corrected = record.late !== '';
    else if (record?.state === 'expired') record.known = true;
  }
}
