// Calls and replies of accounts as the script has them: counters by name, amounts as strings (account.lua).
import type {
  AccountCall,
  AccountReply,
  AskAnswer,
  Audited,
  CounterLine,
  LineState,
  Marking,
  StaleStore,
} from '#core/ports/accounts.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import type { RatesLeft } from '#core/ports/rates.ts';

/** A list in a reply: Lua has no empty lists, so an empty one comes as an object. */
export type List<T> = ReadonlyArray<T> | Record<string, never>;

export const listOf = <T>(list: List<T>): ReadonlyArray<T> => (Array.isArray(list) ? list : []);

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
    lease: Math.ceil(call.lease),
    deadline: Math.floor(call.deadline),
    lines: call.lines.map(fromLine),
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

interface Done {
  readonly outcome: 'done';
  readonly now: number;
  readonly calls: number;
  readonly accounts: number;
  readonly lines: List<readonly [string, string, string, boolean]>;
  readonly asks: List<AnswerText>;
  readonly ended: List<string>;
}

type AnswerText = { readonly rates?: { readonly entry?: number; readonly left: List<RatesLeft> } } & (
  | { readonly outcome: 'held'; readonly amount: string }
  | { readonly outcome: 'exceeded'; readonly counter: number; readonly spent: string }
  | Omit<Extract<AskAnswer, { outcome: 'limited' }>, 'rates'>
  | Omit<Extract<AskAnswer, { outcome: 'busy' }>, 'rates'>
  | Extract<AskAnswer, { outcome: 'late' }>
);

export type ReplyText = Done | Exclude<AccountReply, { outcome: 'done' }>;

export function toReply(reply: ReplyText): AccountReply {
  if (reply.outcome !== 'done') return reply;
  return {
    ...reply,
    lines: listOf(reply.lines).map(toState),
    asks: listOf(reply.asks).map(toAnswer),
    ended: listOf(reply.ended),
  };
}

const toState = ([spent, held, escrow, isWanted]: readonly [string, string, string, boolean]): LineState => ({
  ...{ spent: BigInt(spent), held: BigInt(held), escrow: BigInt(escrow), isWanted },
});

function toAnswer({ rates: found, ...answer }: AnswerText): AskAnswer {
  const rates = found && { rates: { ...found, left: listOf(found.left) } };
  switch (answer.outcome) {
    case 'held':
      return { ...answer, amount: BigInt(answer.amount), ...rates };
    case 'exceeded':
      return { ...answer, spent: BigInt(answer.spent), ...rates };
    case 'limited':
      return { ...answer, rates: rates?.rates ?? { left: [] } };
    default:
      return { ...answer, ...rates };
  }
}

type FiguresText = readonly [string, string, string, List<readonly [number, string]>];

export type MarkingText =
  | Extract<Marking, { outcome: 'none' | 'live' | 'epoch' }>
  | { readonly outcome: 'marked'; readonly now: number; readonly number: number; readonly figures: List<FiguresText> }
  | { readonly outcome: 'absent'; readonly now: number; readonly counters: List<string> };

export function toMarking(marking: MarkingText): Marking {
  if (marking.outcome === 'absent') return { ...marking, counters: listOf(marking.counters).map(toCounter) };
  if (marking.outcome !== 'marked') return marking;
  const figures = listOf(marking.figures).map(([name, escrow, risk, unbooked]) => ({
    ...toCounter(name),
    ...{ escrow: BigInt(escrow), risk: BigInt(risk) },
    unbooked: listOf(unbooked).map(([batch, spend]) => ({ batch, spend: BigInt(spend) })),
  }));
  return { ...marking, figures };
}

export type AuditedText =
  | StaleStore
  | {
      readonly outcome: 'done';
      readonly now: number;
      readonly differences: List<readonly [string, string]>;
      readonly moved: List<string>;
    };

export function toAudited(audited: AuditedText): Audited | StaleStore {
  if (audited.outcome === 'epoch') return audited;
  const differences = listOf(audited.differences).map(([name, by]) => ({ ...toCounter(name), by: BigInt(by) }));
  return { ...audited, differences, moved: listOf(audited.moved) };
}
