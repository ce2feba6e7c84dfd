// Calls and replies in the form of the script: counters by name, amounts as strings (account.lua).
import type { AccountCall, AccountReply, CounterChange, CounterReply } from '#core/ports/counter-store.ts';
import { type Nano, STORED_AMOUNT } from '#core/ports/money.ts';
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
  requests: call.requests.map((request) => ({
    ...request,
    amount: `${request.amount}`,
    minAmount: `${request.minAmount}`,
  })),
  // Indexes in Lua begin with 1.
  sums: call.changes.flatMap(({ sum }, index) => (sum === undefined ? [] : [[index + 1, `${sum}`]])),
});

/** A change with its amounts in the order of the script; zeros at the end are left out. */
function fromChange(change: CounterChange): ReadonlyArray<unknown> {
  const { limit, spend, risk, returned, carriedOver, ahead, laterSpend = [] } = change;
  const amounts = [spend, risk, returned, carriedOver, ahead];
  const isComplete = laterSpend.length > 0;
  const count = isComplete ? amounts.length : amounts.findLastIndex((amount) => amount !== 0n) + 1;
  const fields: unknown[] = [nameOf(change), limit === undefined ? false : `${limit}`];
  for (let index = 0; index < count; index += 1) fields.push(`${amounts[index]}`);
  if (isComplete) fields.push(laterSpend.map((part) => ({ ...part, spend: `${part.spend}` })));
  return fields;
}

/** A reply. In Lua an empty list is an empty table, which becomes an object. */
export const fromText = <T>(text: string): T =>
  // The script is part of this adapter.
  JSON.parse(text, revive) as T;

/** The nano-dollars of an amount. A store may answer with millions of digits, which take seconds to print. */
export function toNano(text: string): Nano {
  if (!STORED_AMOUNT.test(text)) throw new Error('unexpected reply of the store: not an amount');
  return BigInt(text);
}

interface DoneText {
  readonly outcome: string;
  readonly counters: ReadonlyArray<CounterText> | Empty;
  readonly replies:
    | ReadonlyArray<{ readonly amount?: string; readonly spent?: string; readonly rates?: object }>
    | Empty;
  readonly endedAccounts: ReadonlyArray<string> | Empty;
}
type Empty = Readonly<Record<string, never>>;

/** The reply to a call. Nearly every reply is read here, without a look at each of its values. */
export function fromReply(text: string): AccountReply {
  const reply = JSON.parse(text) as DoneText;
  const replies = listOf(reply.replies ?? {});
  if (reply.outcome !== 'done' || replies.some(({ rates }) => rates !== undefined)) return fromText(text);
  return {
    ...reply,
    counters: listOf(reply.counters).map(toState),
    endedAccounts: listOf(reply.endedAccounts),
    replies: replies.map(({ amount, spent, ...rest }) => ({
      ...rest,
      ...(amount === undefined ? {} : { amount: toNano(String(amount)) }),
      ...(spent === undefined ? {} : { spent: toNano(String(spent)) }),
    })),
  } as unknown as AccountReply;
}

const listOf = <T>(list: ReadonlyArray<T> | Empty): ReadonlyArray<T> => (Array.isArray(list) ? list : []);

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

type CounterText = readonly [counter: string, figures: string, isWantedByOthers: boolean];

function toState([counter, figures, isWantedByOthers]: CounterText): CounterReply {
  const blank = counter.indexOf(' ');
  const spent = counter.slice(0, blank);
  return {
    spent: spent === '-' ? undefined : toNano(spent),
    escrowOfAll: toNano(counter.slice(blank + 1)),
    escrow: toNano(figures.slice(0, figures.indexOf(' '))),
    isWantedByOthers,
  };
}
