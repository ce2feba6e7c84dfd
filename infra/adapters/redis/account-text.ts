// Texts of accounts as the script has them: counters by name, amounts as decimal strings, in replies with an `n` behind them (account.lua).
import type {
  AccountCall,
  AccountFigures,
  AskAnswer,
  Audited,
  CounterLine,
  Marking,
  StaleStore,
} from '#core/ports/accounts.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';

/** The names of counters, made once per object: the ledger has one object per policy and window. */
const names = new WeakMap<ScopeWindow, string>();

/** `start:end scope`. */
export function nameOf(of: ScopeWindow): string {
  const known = names.get(of);
  if (known !== undefined) return known;
  const name = `${of.window.start}:${of.window.end} ${of.scopeId}`;
  names.set(of, name);
  return name;
}

export function toCounter(name: string): ScopeWindow {
  const [, start, end, scopeId] = /^(-?\d+):(-?\d+) (.*)$/s.exec(name) ?? [];
  if (scopeId === undefined) throw new Error(`the store returned an invalid counter "${name}"`);
  return { scopeId, window: { start: Number(start), end: Number(end) } };
}

export const fromSum = (sum: ScopeSpend): readonly [string, string] => [nameOf(sum), `${sum.spent}`];

export function fromCall(call: AccountCall): object {
  if (/\s/.test(call.account)) throw new Error(`account "${call.account}": must not contain white space`);
  return {
    ...call,
    ...{ lease: Math.ceil(call.lease), deadline: Math.floor(call.deadline), lines: call.lines.map(fromLine) },
    asks: call.asks.map(({ amount, minAmount, lines, rates }) => ({
      ...{ amount: `${amount}`, minAmount: `${minAmount}`, lines },
      ...(rates === undefined ? {} : { rates: { ...rates, entries: rates.entries.map((entry) => entry ?? false) } }),
    })),
  };
}

/** Amounts in the order of the script; the last ones are left out where they are zero. */
function fromLine(line: CounterLine): ReadonlyArray<string | false> {
  const { limit, spend, risk, returned, registered, ahead } = line;
  const amounts = [spend, risk, returned, registered, ahead];
  const used = amounts.slice(0, amounts.findLastIndex((amount) => amount !== 0n) + 1);
  return [nameOf(line), limit === undefined ? false : `${limit}`, ...used.map(String)];
}

/** A reply of the script with its amounts. Lua has no empty lists: they are left out. */
export const toReply = (text: string): unknown =>
  JSON.parse(text, (_, value) =>
    typeof value === 'string' && /^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  );

export function toAnswer(answer: AskAnswer): AskAnswer {
  if (answer.outcome === 'late' || answer.rates === undefined) return answer;
  return { ...answer, rates: { ...answer.rates, left: answer.rates.left ?? [] } };
}

/** Something of a counter, which is named. */
type Named<T extends ScopeWindow> = Omit<T, keyof ScopeWindow> & { readonly counter: string };

const toNamed = <T extends object>({ counter, ...rest }: T & { readonly counter: string }) => ({
  ...toCounter(counter),
  ...rest,
});

export type MarkingText =
  | Extract<Marking, { outcome: 'none' | 'live' | 'epoch' }>
  | (Omit<Extract<Marking, { outcome: 'absent' }>, 'counters'> & { readonly counters: ReadonlyArray<string> })
  | (Omit<Extract<Marking, { outcome: 'marked' }>, 'figures'> & {
      readonly figures?: ReadonlyArray<Named<AccountFigures>>;
    });

export function toMarking(marking: MarkingText): Marking {
  if (marking.outcome === 'absent') return { ...marking, counters: marking.counters.map(toCounter) };
  if (marking.outcome !== 'marked') return marking;
  const figures = (marking.figures ?? []).map(({ unbooked = [], ...of }) => toNamed({ ...of, unbooked }));
  return { ...marking, figures };
}

export type AuditedText =
  | StaleStore
  | (Omit<Audited, 'differences' | 'moved'> & {
      readonly differences?: ReadonlyArray<Named<Audited['differences'][number]>>;
      readonly moved?: Audited['moved'];
    });

export function toAudited(audited: AuditedText): Audited | StaleStore {
  if (audited.outcome === 'epoch') return audited;
  const { differences = [], moved = [] } = audited;
  return { ...audited, differences: differences.map(toNamed), moved };
}
