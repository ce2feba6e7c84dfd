// Rates of a hold after it was taken: its move to a fallback entry, whose rate must have room, and its end (decision 0012).
import type { Hold, HoldRefusal } from '../ports/ledger.ts';
import type { RateLimit } from '../ports/rates.ts';
import { err, ok, type Result } from '../result.ts';
import { type Account, type HeldRates, liveOf, use } from './account.ts';
import type { Context } from './context.ts';
import { REQUEST_DEADLINE, type Waiting } from './waiting.ts';

type Moved = Result<void, HoldRefusal>;

const NO_CHARGES = { scopes: [], all: [], counters: [], limits: [] };

/** Refused where that entry is full; the hold then stays where it was. The store is not asked where the entry has no limit. */
export const createMove =
  ({ account, clock }: Context, waiting: Waiting) =>
  (hold: Hold, to: RateLimit | undefined): Promise<Moved> => {
    const counted = liveOf(hold)?.counted;
    if (counted === undefined || to === undefined) {
      if (counted !== undefined) enter(account, counted, undefined);
      return Promise.resolve(ok(undefined));
    }
    const request = { tokens: counted.tokens, limits: [], entries: [to] };
    return new Promise((resolve) =>
      waiting.enter({
        ...{ charges: NO_CHARGES, amount: 0n, minAmount: 0n, rates: { request, scopes: [] } },
        deadline: clock.now() + REQUEST_DEADLINE,
        onHeld: () => resolve(ok(enter(account, counted, to))),
        onRefused: (refusal) => resolve(err(refusal)),
      }),
    );
  };

/** The former entry gets its tokens back, not its request. */
function enter(account: Account, counted: HeldRates, to: RateLimit | undefined): void {
  const { entry, tokens } = counted;
  counted.entry = to;
  if (entry !== undefined) use(account, { id: entry.id, requests: 0, tokens: -tokens, parallel: -1 });
}
