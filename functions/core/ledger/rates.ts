// Rates of a request: the question to the store, the view of the client, and moves to a fallback entry (decision 0012).

import { err, ok, type Result } from '../failure/result.ts';
import type { ReservationReply } from '../ports/counter-store.ts';
import type { RateView, Reservation, ReservationParams, ReservationRefusal } from '../ports/ledger.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import { RATE_KINDS, type RateLimit, type RateReply, type RateRequest, WINDOWED_RATES } from '../ports/rates.ts';
import { type Account, addRateChange } from './account.ts';
import type { LedgerContext } from './context.ts';
import type { WaitingRequest } from './counters.ts';
import { type LimitUse, limitsOf, liveOf, type RateUse } from './requests.ts';
import { REQUEST_DEADLINE } from './timeout.ts';

/**
 * Undefined where neither a scope nor an entry is limited. Entries that are not limited count too: the reservation may move to
 * one that is.
 */
export function ratesOf({ scopes, entries = NO_ENTRIES, tokens = 0 }: ReservationParams): RateRequest | undefined {
  if (!scopes.some(hasLimits) && entries.length === 0) return undefined;
  return { tokens, limits: scopes.filter(hasLimits).map(toLimit), entries };
}

const NO_ENTRIES: NonNullable<ReservationParams['entries']> = [];
const hasLimits = ({ limits }: ScopePolicy): boolean => limits !== undefined;

function toLimit({ scopeId, limits = {} }: ScopePolicy): RateLimit {
  const of = Object.entries(RATE_KINDS).map(([kind, { limit }]) => [kind, limits[limit]]);
  return { id: `scope ${scopeId}`, ...Object.fromEntries(of.filter(([, limit]) => limit !== undefined)) };
}

/** The refusal that the gateway gets when a rate refuses. */
export function toLimited(
  { charges, rates }: WaitingRequest,
  answer: Extract<ReservationReply, { outcome: 'limited' }>,
): ReservationRefusal {
  const { limit: at, rate, retryIn, rates: reply } = answer;
  const limit = (rates?.limits[at] ?? rates?.entries[at - rates.limits.length])?.[rate];
  if (limit === undefined) throw new Error('the store refused for a rate that was not asked for');
  const scope = charges.scopes.filter(hasLimits)[at];
  const view = toView(rates, reply).rates ?? {};
  return { reason: 'limited', rate, limit, retryIn, rates: view, ...(scope === undefined ? {} : { scope }) };
}

/** The scope that leaves the least, the first of equals. Rates of model entries are not shown to clients. */
export function toView(asked: RateRequest | undefined, reply: RateReply | undefined): { readonly rates?: RateView } {
  if (asked === undefined || reply === undefined) return {};
  const tight = WINDOWED_RATES.map((kind) => [kind, tightest(kind, asked, reply)] as const);
  return { rates: Object.fromEntries(tight.filter(([, left]) => left !== undefined)) };
}

function tightest(what: keyof RateView, { limits }: RateRequest, { left }: RateReply): RateView['requests'] {
  let lowest: RateView['requests'];
  limits.forEach(({ [what]: limit }, index) => {
    const one = left[index]?.[what];
    if (limit === undefined || one === undefined) return;
    if (lowest === undefined || one.remaining < lowest.remaining) lowest = { ...one, limit };
  });
  return lowest;
}

/** The rates that a request has taken, as the store answered. */
export function rateUseOf({ epoch }: Account, asked: RateRequest, { entry = -1, minute }: RateReply): RateUse {
  const taken = ({ id, requests, tokens, parallel }: RateLimit): LimitUse => ({
    id,
    minute,
    epoch,
    requests: requests === undefined ? undefined : 1,
    tokens: tokens === undefined ? undefined : Math.min(asked.tokens, tokens),
    parallel: parallel === undefined ? 0 : 1,
  });
  const chosen = asked.entries[entry];
  return { limits: asked.limits.map(taken), entry: chosen && taken(chosen), tokens: asked.tokens };
}

/** The true use of a request: 1 request, or 0 without a provider. */
export interface RateUsage {
  readonly requests: number;
  readonly tokens: number;
}

/**
 * A limit gets back no more than was taken of it, in the minute where it was taken. Tokens used beyond that count now.
 */
export function giveBack(account: Account, taken: LimitUse, used: RateUsage): void {
  const { id, minute, parallel } = taken;
  // Another epoch knows nothing of what was taken in an earlier one.
  const isKnown = taken.epoch === account.epoch;
  const requests = taken.requests === undefined || !isKnown ? 0 : used.requests - taken.requests;
  const tokens = taken.tokens === undefined ? 0 : used.tokens - (isKnown ? taken.tokens : 0);
  addRateChange(account, { id, minute, requests, tokens: Math.min(0, tokens), parallel: 0 });
  addRateChange(account, { id, requests: 0, tokens: Math.max(0, tokens), parallel: -parallel });
}

/** The store has taken rates for a request that does not need them any more. */
export function giveAllBack(
  account: Account,
  { rates }: Pick<WaitingRequest, 'rates'>,
  reply: RateReply | undefined,
): void {
  if (rates === undefined || reply === undefined) return;
  for (const taken of limitsOf(rateUseOf(account, rates, reply))) giveBack(account, taken, { requests: 0, tokens: 0 });
}

type MoveResult = Result<void, ReservationRefusal>;

const OK: MoveResult = ok(undefined);

const NO_CHARGES = { scopes: [], all: [], counters: [], limits: [] };

/**
 * Refused where that entry is full; the reservation then stays where it was. The store is not asked where the entry has no
 * limit.
 */
export const createMove =
  ({ account, clock, waitQueue }: LedgerContext) =>
  (reservation: Reservation, to: RateLimit | undefined): Promise<MoveResult> => {
    const live = liveOf(reservation);
    if (live?.rateUse === undefined) return Promise.resolve(OK);
    if (to === undefined) return Promise.resolve(changeEntry(account, live.rateUse, undefined));
    const { rateUse } = live;
    const rates = { tokens: rateUse.tokens, limits: [], entries: [to] };
    return new Promise((resolve) =>
      waitQueue.add({
        charges: NO_CHARGES,
        amount: 0n,
        minAmount: 0n,
        rates,
        isGrowth: false,
        deadline: clock.now() + REQUEST_DEADLINE,
        onReserved({ reply }) {
          if (live.ending === undefined)
            return resolve(changeEntry(account, rateUse, reply && rateUseOf(account, rates, reply).entry));
          giveAllBack(account, { rates }, reply);
          resolve(OK);
        },
        onRefused: (refusal) => resolve(err(refusal)),
      }),
    );
  };

/** The former entry gets its tokens back, not its request. */
function changeEntry(account: Account, counted: RateUse, to: LimitUse | undefined): MoveResult {
  if (counted.entry !== undefined) giveBack(account, counted.entry, { requests: 1, tokens: 0 });
  counted.entry = to;
  return OK;
}
