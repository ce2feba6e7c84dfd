// Calls and replies of accounts as the script has them: counters by name, amounts as strings, no empty lists (account.lua).
import type {
  AccountCall,
  AccountReply,
  AskAnswer,
  Audited,
  CounterLine,
  Marking,
  StaleStore,
} from '#core/ports/accounts.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import type { RateReply } from '#core/ports/rates.ts';

/** The name of a counter. */
export const nameOf = ({ scopeId, window }: ScopeWindow): string => `${window.start}:${window.end} ${scopeId}`;

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

type Done = Extract<AccountReply, { outcome: 'done' }>;

export type ReplyText =
  | Exclude<AccountReply, { outcome: 'done' }>
  | (Omit<Done, 'lines' | 'asks' | 'ended'> & {
      readonly lines?: ReadonlyArray<readonly [spent: string, held: string, escrow: string, isWanted: boolean]>;
      readonly asks?: ReadonlyArray<AnswerText>;
      readonly ended?: Done['ended'];
    });

type AnswerText = { readonly rates?: Partial<RateReply> } & (
  | { readonly outcome: 'held'; readonly amount: string }
  | { readonly outcome: 'exceeded'; readonly counter: number; readonly spent: string }
  | Omit<Extract<AskAnswer, { outcome: 'limited' }>, 'rates'>
  | Omit<Extract<AskAnswer, { outcome: 'busy' | 'late' }>, 'rates'>
);

export function toReply(reply: ReplyText): AccountReply {
  if (reply.outcome !== 'done') return reply;
  const { lines = [], asks = [], ended = [] } = reply;
  const states = lines.map(([spent, held, escrow, isWanted]) => ({
    ...{ spent: BigInt(spent), held: BigInt(held), escrow: BigInt(escrow), isWanted },
  }));
  return { ...reply, lines: states, asks: asks.map(toAnswer), ended };
}

function toAnswer({ rates, ...answer }: AnswerText): AskAnswer {
  const left = rates && { rates: { left: [], ...rates } };
  if (answer.outcome === 'held') return { ...answer, ...left, amount: BigInt(answer.amount) };
  if (answer.outcome === 'exceeded') return { ...answer, ...left, spent: BigInt(answer.spent) };
  // With rates where they refuse, and no amounts.
  return { ...answer, ...left } as AskAnswer;
}

export type MarkingText =
  | Extract<Marking, { outcome: 'none' | 'live' | 'epoch' }>
  | (Omit<Extract<Marking, { outcome: 'absent' }>, 'counters'> & { readonly counters: ReadonlyArray<string> })
  | (Omit<Extract<Marking, { outcome: 'marked' }>, 'figures'> & {
      readonly figures?: ReadonlyArray<
        readonly [name: string, escrow: string, risk: string, unbooked?: ReadonlyArray<readonly [number, string]>]
      >;
    });

export function toMarking(marking: MarkingText): Marking {
  if (marking.outcome === 'absent') return { ...marking, counters: marking.counters.map(toCounter) };
  if (marking.outcome !== 'marked') return marking;
  const figures = (marking.figures ?? []).map(([name, escrow, risk, unbooked = []]) => ({
    ...toCounter(name),
    ...{ escrow: BigInt(escrow), risk: BigInt(risk) },
    unbooked: unbooked.map(([batch, spend]) => ({ batch, spend: BigInt(spend) })),
  }));
  return { ...marking, figures };
}

export type AuditedText =
  | StaleStore
  | (Omit<Audited, 'differences' | 'moved'> & {
      readonly differences?: ReadonlyArray<readonly [name: string, by: string]>;
      readonly moved?: Audited['moved'];
    });

export function toAudited(audited: AuditedText): Audited | StaleStore {
  if (audited.outcome === 'epoch') return audited;
  const { differences = [], moved = [] } = audited;
  return { ...audited, differences: differences.map(([name, by]) => ({ ...toCounter(name), by: BigInt(by) })), moved };
}
