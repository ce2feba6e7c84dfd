// Calls and replies of accounts as the script has them: counters by name, amounts as strings (account.lua).
import type { AccountCall, CounterChange, CounterReply } from '#core/ports/counter-store.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';

/** The name of a counter: more than 64 bytes, which Redis finds by their hash and not one after the other. */
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
});

/** Amounts in the order of the script; the last ones are left out where they are zero. */
function fromChange(line: CounterChange): ReadonlyArray<string | false> {
  const { limit, spend, risk, returned, registered, ahead } = line;
  const amounts = [spend, risk, returned, registered, ahead];
  const used = amounts.slice(0, amounts.findLastIndex((amount) => amount !== 0n) + 1);
  return [nameOf(line), limit === undefined ? false : `${limit}`, ...used.map(String)];
}

export const toText = (argument: object): string =>
  JSON.stringify(argument, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));

/** A reply. In Lua an empty list is an empty table, which becomes an object. */
export const fromText = <T>(text: string): T =>
  // The script is part of this adapter.
  JSON.parse(text, revive) as T;

const AMOUNTS: ReadonlySet<string> = new Set(['amount', 'spent', 'reserved', 'escrow', 'risk', 'spend', 'by']);

function revive(key: string, found: unknown): unknown {
  if (AMOUNTS.has(key)) return BigInt(String(found));
  if (typeof found !== 'object' || found === null) return found;
  // Elements of a list have numbers as keys.
  const value = Object.keys(found).length === 0 && !/^\d+$/.test(key) ? [] : found;
  if (key === 'counters' && Array.isArray(value))
    return value.map((one) => (typeof one === 'string' ? toCounter(one) : toState(one)));
  if (!('counter' in value) || typeof value.counter !== 'string') return value;
  const { counter, ...rest } = value;
  return { ...toCounter(counter), ...rest };
}

function toState([counter, figures, isWanted]: readonly [
  counter: string,
  figures: string,
  isWanted: boolean,
]): CounterReply {
  const [spent = '', held = '', escrow = ''] = [...counter.split(' '), ...figures.split(' ')];
  return { spent: spent === '-' ? 0n : BigInt(spent), reserved: BigInt(held), escrow: BigInt(escrow), isWanted };
}
