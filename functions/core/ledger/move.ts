// Moves of a hold to a fallback entry, whose rate must have room (decision 0012).
import type { AskAnswer } from '../ports/accounts.ts';
import type { Hold, HoldRefusal } from '../ports/ledger.ts';
import type { RateLimit } from '../ports/rates.ts';
import { err, ok, type Result } from '../result.ts';
import { type Account, type HeldRates, use } from './account.ts';
import type { Waiter } from './counters.ts';
import type { LedgerDependencies } from './deps.ts';
import { liveOf } from './ends.ts';
import { REQUEST_DEADLINE, type Waiting } from './waiting.ts';

export interface MoveDependencies extends Pick<LedgerDependencies, 'clock'> {
  readonly account: Account;
  readonly waiting: Waiting;
}

type Moved = Result<void, HoldRefusal>;

/** Refused where that entry is full; the hold then stays where it was. The store is not asked where the entry has no limit. */
export function createMove(deps: MoveDependencies) {
  return (hold: Hold, to: RateLimit | undefined): Promise<Moved> => {
    const counted = liveOf(hold)?.counted;
    if (counted === undefined) return Promise.resolve(ok(undefined));
    if (to !== undefined) return ask(deps, counted, to);
    leaveEntry(deps.account, counted);
    return Promise.resolve(ok(undefined));
  };
}

function ask({ account, waiting, clock }: MoveDependencies, counted: HeldRates, to: RateLimit): Promise<Moved> {
  return new Promise((resolve) => {
    const request = { tokens: counted.tokens, limits: [], entries: [to] };
    const answered = (answer: AskAnswer): void => {
      if (answer.outcome === 'late') waiting.again(waiter);
      else {
        waiting.remove(waiter);
        resolve(answer.outcome === 'limited' ? refused(to, answer) : moved());
      }
    };
    const moved = (): Moved => {
      leaveEntry(account, counted);
      counted.entry = to;
      return ok(undefined);
    };
    const waiter: Waiter = {
      ...{ scopes: [], counters: [], amount: 0n, minAmount: 0n, rates: { request, scopes: [] } },
      ...{
        deadline: clock.now() + REQUEST_DEADLINE,
        view: undefined,
        busyIn: undefined,
        isAsking: false,
        isOver: false,
      },
      ...{ renew: () => undefined, onAnswer: answered, onRefused: (refusal) => resolve(err(refusal)) },
    };
    waiting.enter(waiter);
  });
}

const refused = (to: RateLimit, { rate, retryIn }: Extract<AskAnswer, { outcome: 'limited' }>): Moved =>
  err({ reason: 'limited', rate, retryIn, limit: to[rate] ?? 0, rates: {} });

/** The former entry gets its tokens back, not its request. */
function leaveEntry(account: Account, counted: HeldRates): void {
  const { entry, tokens } = counted;
  counted.entry = undefined;
  if (entry !== undefined) use(account, { id: entry.id, requests: 0, tokens: -tokens, parallel: -1 });
}
