// Calls and replies in the form of the script: counters by name, amounts as strings (account.lua).
import type { AccountCall, CounterChange, CounterReply } from '#core/ports/counter-store.ts';
import type { Nano } from '#core/ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';

/**
 * The name of a counter in the script. It has more than 64 bytes, so that Redis finds it by a hash and not by a scan.
 */
export const nameOf = ({ scopeId, window }: ScopeWindow): string => `${window.start}:${window.end} scope ${scopeId}`;

function toCounter(name: string): ScopeWindow {
  const [, start, end, scopeId] = /^(-?\d+):(-?\d+) scope (.*)$/s.exec(name) ?? [];
  if (scopeId === undefined) throw new Error(`the store returned an invalid counter "${name}"`);
  return { scopeId, window: { start: Number(start), end: Number(end) } };
}

export const fromSum = (sum: ScopeSpend): readonly [string, string] => [nameOf(sum), `${sum.spent}`];

export const fromCall = (call: AccountCall): object => ({
  ...call,
  lease: Math.ceil(call.lease),
  deadline: Math.floor(call.deadline),
  changes: call.changes.map(fromChange),
  // Indexes in Lua begin with 1.
  sums: call.changes.flatMap(({ sum }, index) => (sum === undefined ? [] : [[index + 1, `${sum}`]])),
});

/** A change with its amounts in the order of the script; zeros at the end are left out. */
function fromChange(change: CounterChange): ReadonlyArray<unknown> {
  const { limit, spend, risk, returned, carriedOver, ahead, laterSpend = [] } = change;
  const amounts = [spend, risk, returned, carriedOver, ahead];
  const sent = amounts.slice(0, amounts.findLastIndex((amount) => amount !== 0n) + 1);
  const start = [nameOf(change), limit === undefined ? false : `${limit}`];
  return laterSpend.length > 0 ? [...start, ...amounts.map(String), laterSpend] : [...start, ...sent.map(String)];
}

export const toText = (argument: object): string =>
  JSON.stringify(argument, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));

/** A reply. In Lua an empty list is an empty table, which becomes an object. */
export const fromText = <T>(text: string): T =>
  // The script is part of this adapter.
  JSON.parse(text, revive) as T;

/** The nano-dollars of an amount. A store may answer with millions of digits, which take seconds to print. */
export function toNano(text: string): Nano {
  if (!/^-?\d{1,40}$/.test(text)) throw new Error('unexpected reply of the store: not an amount');
  return BigInt(text);
}

const AMOUNTS: ReadonlySet<string> = new Set(['amount', 'spent', 'escrowOfAll', 'escrow', 'risk', 'spend', 'by']);

function revive(key: string, json: unknown): unknown {
  if (AMOUNTS.has(key)) return toNano(String(json));
  if (typeof json !== 'object' || json === null) return json;
  // Elements of a list have numbers as keys.
  const value = Object.keys(json).length === 0 && !/^\d+$/.test(key) ? [] : json;
  if (key === 'counters' && Array.isArray(value))
    return value.map((element) => (typeof element === 'string' ? toCounter(element) : toState(element)));
  if (!('counter' in value) || typeof value.counter !== 'string') return value;
  const { counter, ...rest } = value;
  return { ...toCounter(counter), ...rest };
}

function toState([counter, figures, isWantedByOthers]: readonly [
  counter: string,
  figures: string,
  isWantedByOthers: boolean,
]): CounterReply {
  const [spent = '', escrowOfAll = '', escrow = ''] = [...counter.split(' '), ...figures.split(' ')];
  return {
    spent: spent === '-' ? undefined : toNano(spent),
    escrowOfAll: toNano(escrowOfAll),
    escrow: toNano(escrow),
    isWantedByOthers,
  };
}
