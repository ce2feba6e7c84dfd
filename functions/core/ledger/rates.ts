// Rates of a request: its request to the store, the figures that the client gets, and moves to a fallback model entry
// (decision 0012).

import { err, ok, type Result } from '../failure/result.ts';
import { NO_TOKENS } from '../money/usage.ts';
import type { ReservationReply } from '../ports/counter-store.ts';
import type { RateView, Reservation, ReservationParams, ReservationRefusal } from '../ports/ledger.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import {
  addedUse,
  isEstimated,
  perEstimatedRate,
  perWindowedRate,
  RATE_ROWS,
  type RateEstimates,
  type RateLimit,
  type RateReply,
  type RateRequest,
  type RateUsage,
  usageAtEnd,
  WINDOWED_RATES,
  type WindowedRate,
} from '../ports/rates.ts';
import { type Account, addRateChange } from './account.ts';
import type { LedgerContext } from './context.ts';
import type { WaitingRequest } from './counters.ts';
import { type LimitUse, limitsOf, liveOf, type RateUse } from './requests.ts';
import { REQUEST_DEADLINE } from './timeout.ts';

/**
 * The rates that a request needs; undefined if neither a scope nor a model entry is limited. Model entries without a
 * limit are included, since the reservation may move from them to one with a limit.
 */
export function ratesOf(params: ReservationParams): RateRequest | undefined {
  const { scopes, modelEntryLimits = NO_ENTRIES } = params;
  if (!scopes.some(hasLimits) && modelEntryLimits.length === 0) return undefined;
  const estimates = perEstimatedRate((kind) => params[kind] ?? 0);
  return { ...estimates, limits: scopes.filter(hasLimits).map(toLimit), modelEntryLimits };
}

const NO_ENTRIES: NonNullable<ReservationParams['modelEntryLimits']> = [];
const hasLimits = ({ limits }: ScopePolicy): boolean => limits !== undefined;

function toLimit({ scopeId, limits = {} }: ScopePolicy): RateLimit {
  const limitOf = RATE_ROWS.map(([kind, { specField }]) => [kind, limits[specField]]);
  return { id: `scope ${scopeId}`, ...Object.fromEntries(limitOf.filter(([, limit]) => limit !== undefined)) };
}

/** The gateway's view of a refusal by a rate. */
export function toRateRefusal(
  { chargedCounters, rates }: WaitingRequest,
  result: Extract<ReservationReply, { outcome: 'limited' }>,
): ReservationRefusal {
  const { limitIndex, rate, retryIn, rates: reply } = result;
  const limit = (rates?.limits[limitIndex] ?? rates?.modelEntryLimits[limitIndex - rates.limits.length])?.[rate];
  if (limit === undefined) throw new Error('the store refused a request for a rate that it does not name (our error)');
  const scope = chargedCounters.scopes.filter(hasLimits)[limitIndex];
  const view = toView(rates, reply).rates ?? {};
  return { reason: 'limited', rate, limit, retryIn, rates: view, ...(scope === undefined ? {} : { scope }) };
}

/**
 * The figures that the client gets: for each kind, the scope with the smallest remainder (of several, the first). Rates
 * of model entries are not shown.
 */
export function toView(request: RateRequest | undefined, reply: RateReply | undefined): { readonly rates?: RateView } {
  if (request === undefined || reply === undefined) return {};
  const tight = WINDOWED_RATES.map((kind) => [kind, tightest(kind, request, reply)] as const);
  return { rates: Object.fromEntries(tight.filter(([, limit]) => limit !== undefined)) };
}

function tightest(kind: WindowedRate, { limits }: RateRequest, { remainders }: RateReply): RateView['requests'] {
  let lowest: RateView['requests'];
  limits.forEach(({ [kind]: limit }, index) => {
    const remainder = remainders[index]?.[kind];
    if (limit === undefined || remainder === undefined) return;
    if (lowest === undefined || remainder.remaining < lowest.remaining) lowest = { ...remainder, limit };
  });
  return lowest;
}

/** The use of rates by a request, as the store replied. */
export function rateUseOf(
  { epoch }: Account,
  request: RateRequest,
  { modelEntryIndex = -1, minute }: RateReply,
): RateUse {
  const toUse = (limit: RateLimit): LimitUse => ({
    id: limit.id,
    minute,
    epoch,
    counted: perWindowedRate((kind) => {
      const max = limit[kind];
      return max === undefined ? undefined : addedUse(kind, request, max);
    }),
    parallel: limit.parallel === undefined ? 0 : 1,
  });
  const chosen = request.modelEntryLimits[modelEntryIndex];
  return { limits: request.limits.map(toUse), modelEntryUse: chosen && toUse(chosen), estimates: request };
}

/**
 * Returns the unused part of a limit, at most what was used of it, to the minute of the use. Use beyond that counts
 * now.
 */
export function returnRate(account: Account, use: LimitUse, usage: RateUsage): void {
  const { id, minute, parallel, counted: windows } = use;
  const excess = (kind: WindowedRate): number => {
    const used = windows[kind];
    if (used === undefined) return 0;
    if (use.epoch === account.epoch) return usage[kind] - used;
    // A later epoch has no record of the use. There, a kind with estimates counts its whole use.
    return isEstimated(kind) ? usage[kind] : 0;
  };
  addRateChange(account, { id, minute, ...perWindowedRate((kind) => Math.min(0, excess(kind))), parallel: 0 });
  addRateChange(account, { id, ...perWindowedRate((kind) => Math.max(0, excess(kind))), parallel: -parallel });
}

/** The use of a request whose attempts got no reply. */
const usageWithoutReply = (isCalled: boolean, estimates: RateEstimates): RateUsage =>
  usageAtEnd({ isCalled, tokens: NO_TOKENS, estimates });

/** Returns the rates of a request that does not need them any more. */
export function returnRates(
  account: Account,
  { rates }: Pick<WaitingRequest, 'rates'>,
  reply: RateReply | undefined,
): void {
  if (rates === undefined || reply === undefined) return;
  const usage = usageWithoutReply(false, rates);
  for (const use of limitsOf(rateUseOf(account, rates, reply))) returnRate(account, use, usage);
}

type MoveResult = Result<void, ReservationRefusal>;

const OK: MoveResult = ok(undefined);

const NO_CHARGES = { scopes: [], scopeWindows: [], counters: [], limits: [] };

/**
 * Moves the reservation to a fallback model entry. The store is not called if that model entry has no limit.
 */
export const createMoveToModelEntry =
  ({ account, intervalClock, waitQueue }: LedgerContext) =>
  (reservation: Reservation, to: RateLimit | undefined, estimates?: RateEstimates): Promise<MoveResult> => {
    const live = liveOf(reservation);
    if (live?.rateUse === undefined) return Promise.resolve(OK);
    if (to === undefined) return Promise.resolve(changeModelEntry(account, live.rateUse, undefined));
    const { namespace, rateUse } = live;
    const ofScopes = rateUse.estimates;
    const ofEntry = perEstimatedRate((kind) => Math.min(ofScopes[kind], estimates?.[kind] ?? ofScopes[kind]));
    const rates = { ...ofEntry, limits: [], modelEntryLimits: [to] };
    return new Promise((resolve) =>
      waitQueue.add({
        namespace,
        chargedCounters: NO_CHARGES,
        amount: 0n,
        minAmount: 0n,
        rates,
        isGrowth: false,
        deadline: intervalClock.now() + REQUEST_DEADLINE,
        onReserved({ reply }) {
          if (live.ending === undefined)
            return resolve(changeModelEntry(account, rateUse, reply && rateUseOf(account, rates, reply).modelEntryUse));
          returnRates(account, { rates }, reply);
          resolve(OK);
        },
        onRefused: (refusal) => resolve(err(refusal)),
      }),
    );
  };

/** Changes the model entry: the previous one gets back what a request without a reply does not use. */
function changeModelEntry(account: Account, rateUse: RateUse, to: LimitUse | undefined): MoveResult {
  const { modelEntryUse, estimates } = rateUse;
  if (modelEntryUse !== undefined) returnRate(account, modelEntryUse, usageWithoutReply(true, estimates));
  rateUse.modelEntryUse = to;
  return OK;
}
