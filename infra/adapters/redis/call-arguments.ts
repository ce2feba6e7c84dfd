// A store call as arguments of the script: holds and settlements plain, each counter once, rarer operations as JSON (script.ts).
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { Counter, HoldOperation, Load, Registration, SettleOperation, StoreCall } from '#core/ports/store.ts';
import { noteText, settlementText, windowText } from './note-text.ts';
import { fromCount, fromMove, fromRates } from './rates.ts';

/** `call`, epoch, process, its acknowledged calls, rarer operations as JSON, the numbers of counters, settlements and holds; then these. */
export function toArguments(call: StoreCall): string[] {
  const { epoch, from, settles, holds } = call;
  const counters = createCounterIndex();
  const ends: string[] = [];
  for (const settle of settles)
    ends.push(settle.id, `${settle.cost}`, settle.note ? settlementText(settle.note) : '', moreOf(settle));
  const begins: string[] = [];
  for (const hold of holds) pushHold(begins, hold, counters.indexOf);
  const { args, count } = counters.all();
  const [process, acknowledged] = from === undefined ? ['', ''] : [from.process, `${from.acknowledged}`];
  const head = ['call', `${epoch}`, process, acknowledged, restOf(call)];
  return head.concat([`${count}`, `${settles.length}`, `${holds.length}`], args, ends, begins);
}

export const fromCounter = (of: ScopeWindow): [string, string] => [of.scopeId, windowText(of)];

/** Rarer fields of a settlement: its tokens, and what the store needs for an unknown hold. Empty where there are none. */
function moreOf({ counters, counted, note, tokens }: SettleOperation): string {
  if (counters === undefined && tokens === undefined) return '';
  return JSON.stringify({
    ...(tokens === undefined ? {} : { tokens: fromCount(tokens) }),
    ...(counters === undefined ? {} : { counters: counters.map(fromCounter) }),
    ...(counters === undefined || note === undefined
      ? {}
      : { charges: note.charges.map(fromCounter), note: noteText(note) }),
    ...(counted === undefined ? {} : { counted: `${counted}` }),
  });
}

function pushHold(
  args: string[],
  hold: HoldOperation,
  indexOf: (of: ScopeWindow & { limit?: bigint }) => string,
): void {
  const { id, amount, minAmount, counters, note, deadline, lease, rates } = hold;
  let shape = '';
  for (const counter of counters) shape += indexOf(counter);
  if (!isSame(counters, note.charges)) {
    shape += '//';
    for (const charge of note.charges) shape += indexOf(charge);
  }
  args.push(id, `${amount}`, `${minAmount}`, shape, `${Math.floor(deadline)}`, `${Math.ceil(lease)}`, noteText(note));
  args.push(rates === undefined ? '' : JSON.stringify(fromRates(rates)));
}

const isSame = (counters: ReadonlyArray<Counter>, charges: ReadonlyArray<ScopeWindow>): boolean =>
  counters.length === charges.length && counters.every(({ scopeId }, at) => scopeId === charges[at]?.scopeId);

/** Indices of two characters; the script reads them as numbers. */
const INDICES = Array.from({ length: 4096 }, (_, at) => String.fromCharCode(48 + Math.floor(at / 64), 48 + (at % 64)));

function createCounterIndex() {
  const indices = new Map<ScopeWindow, string>();
  const args: string[] = [];
  return {
    indexOf(of: ScopeWindow & { readonly limit?: bigint }): string {
      const before = indices.get(of);
      if (before !== undefined) return before;
      const index = INDICES[indices.size];
      if (index === undefined) throw new Error('too many counters in one store call');
      args.push(of.scopeId, windowText(of), of.limit === undefined ? '' : `${of.limit}`);
      indices.set(of, index);
      return index;
    },
    all: () => ({ args, count: indices.size }),
  };
}

/** The rarer operations as JSON; empty on almost every call. */
function restOf({ marks, registers, releases, renewals, loads, adjusts, moves }: StoreCall): string {
  const rest = {
    ...(marks === undefined ? {} : { marks: [...marks].map(([process, calls]) => [process, `${calls}`]) }),
    ...listed('registers', registers, fromRegistration),
    ...listed('releases', releases, ({ id, lease, called }) => ({
      ...{ id, lease: `${lease}` },
      ...(called === true ? { called: 'yes' } : {}),
    })),
    ...listed('renewals', renewals, ({ id, known, lease }) => ({
      ...{ id, lease: `${lease}` },
      ...(known === undefined ? {} : { known: `${known}` }),
    })),
    ...listed('loads', loads, fromLoad),
    ...listed('adjusts', adjusts, fromAdjustment),
    ...listed('moves', moves, fromMove),
  };
  return Object.keys(rest).length === 0 ? '' : JSON.stringify(rest);
}

const listed = <T>(name: string, list: ReadonlyArray<T> | undefined, to: (one: T) => object) =>
  list === undefined || list.length === 0 ? {} : { [name]: list.map(to) };

const fromLoad = (load: Load) => ({
  ...{ counter: fromCounter(load), spent: `${load.spent}` },
  ...(load.booked === undefined ? {} : { booked: load.booked.map(({ id, kind }) => `${id} ${kind}`) }),
  ...(load.deadline === undefined ? {} : { deadline: `${Math.floor(load.deadline)}` }),
});

const fromAdjustment = (adjustment: NonNullable<StoreCall['adjusts']>[number]) => ({
  ...{ counter: fromCounter(adjustment), by: `${adjustment.by}`, deadline: `${Math.floor(adjustment.deadline)}` },
});

const fromRegistration = ({ id, amount, at, known, charged, note, lease }: Registration) => ({
  ...{ id, amount: `${amount}`, at: `${Math.floor(at)}`, lease: `${Math.ceil(lease)}` },
  ...(known === undefined ? {} : { known: `${known}` }),
  ...(charged === undefined ? {} : { charged: `${charged}` }),
  ...{ scopes: note.charges.map(({ scopeId }) => scopeId), note: noteText(note) },
});
