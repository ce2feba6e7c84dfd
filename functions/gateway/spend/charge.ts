// Charges of calls: by the provider's count, or by an estimate, together with earlier calls that failed (LEDGER 9, 10).
import { larger, smaller } from '#core/money/money.ts';
import { costOf, hasMediaRate, MAX_COST } from '#core/money/price.ts';
import { NO_TOKENS, toTokens, type Usage } from '#core/money/usage.ts';
import type { Settlement } from '#core/ports/ledger.ts';
import type { OutputSize, Recipient, Reply } from '../wire/codec.ts';
import { atHigherRates, withOutputMedia } from '../wire/prompt/higher-rates.ts';
import { estimateTokens } from '../wire/prompt/prompt.ts';
import { webSearchesAt } from '../wire/prompt/unmetered-features.ts';
import type { BoundedCandidate, ReservedGrant } from './reserve.ts';

/** The entry that was called. */
type CalledEntry = BoundedCandidate & Pick<Recipient, 'limit'>;

/** A call of a provider, and the charge of earlier ones that failed. */
export interface ChargedCall {
  readonly reservation: ReservedGrant;
  readonly target: CalledEntry;
  readonly failedCharge: Settlement | undefined;
}

/** The charge of a whole reply. */
export function settlementOfReply(call: ChargedCall, reply: Reply): Settlement {
  return withFailedCalls(call, settlementOfWhole(call, reply));
}

/** A count of zero beside an answer is none. */
function settlementOfWhole(call: ChargedCall, { usage, size }: Reply): Settlement {
  if (usage !== undefined && usage.output > 0) {
    return settlementOf(call, withMediaOf(usage, call.target, size), {});
  }
  const { outputBytes, media } = size();
  const output = estimateOutput({ outputBytes, media }, 1);
  if (usage === undefined) return settlementOf(call, undefined, output);
  if (outputBytes + media === 0) return settlementOf(call, usage, {});
  return settlementOfPartialCount(call, usage, output);
}

/** The charge of a prompt that was sent and whose answer broke off after this many bytes, or was counted and failed. */
export function settlementOfFailed(call: ChargedCall, heard: number | Usage): Settlement {
  const [counted, output] = typeof heard === 'number' ? [undefined, estimateTokens(heard)] : [heard, 0];
  return withFailedCalls(call, settlementOf(call, counted, { output }));
}

/**
 * The count, with media of the answer that it does not tell apart. Only where media has a rate of its own: most answers
 * need not be sized.
 */
export function withMediaOf(usage: Usage, { price }: CalledEntry, size: () => OutputSize): Usage {
  return hasMediaRate(price) && size().media > 0 ? withOutputMedia(usage) : usage;
}

/** About how many tokens an output is: at least `min`. */
export function estimateOutput({ outputBytes, media }: OutputSize, min: number): Pick<Usage, 'output' | 'outputMedia'> {
  const outputMedia = Math.ceil(media);
  const output = Math.max(min, estimateTokens(outputBytes) + outputMedia);
  return outputMedia === 0 ? { output } : { output, outputMedia };
}

/** A charge together with that of earlier calls that failed. An estimated charge is at most the rest of the reservation. */
export function withFailedCalls(
  { reservation: { reservation }, failedCharge }: ChargedCall,
  settlement: Settlement,
): Settlement {
  if (failedCharge === undefined) return settlement;
  const [tokens, more] = [settlement.tokens, failedCharge.tokens];
  const rest = larger(reservation.amount - failedCharge.cost, 0n);
  return {
    ...settlement,
    cost: failedCharge.cost + smaller(settlement.cost, settlement.estimated ? rest : MAX_COST),
    tokens: {
      input: tokens.input + more.input,
      output: tokens.output + more.output,
      cachedInput: tokens.cachedInput + more.cachedInput,
      cacheWrite: tokens.cacheWrite + more.cacheWrite,
    },
    estimated: true,
  };
}

/**
 * A count of the prompt, and an estimate of an answer that was not counted to its end: at most the reservation, unless the
 * count is more.
 */
export function settlementOfPartialCount(call: ChargedCall, counted: Usage, output: Partial<Usage>): Settlement {
  const minimum = settlementOf(call, counted, {});
  const estimate = settlementOf(call, undefined, { ...counted, ...output });
  return estimate.cost >= minimum.cost ? estimate : minimum;
}

export function settlementOf(
  { reservation, target }: ChargedCall,
  counted: Usage | undefined,
  estimated: Partial<Usage>,
): Settlement {
  const { entry, price, provider, limit, uncountedPrompt } = target;
  const { request } = reservation.grant;
  const { input: prompt = 0, output = 0, ...rest } = estimated;
  // No prompt has zero tokens: a count that says so is none.
  const asked = prompt > 0 ? { input: prompt } : uncountedPrompt;
  // The estimate may be too high, or the provider went beyond the limit: the client pays for no more tokens than were
  // allowed.
  const reported = counted ?? { ...NO_TOKENS, ...rest, ...asked, output: Math.min(output, limit.max * request.n) };
  // Searches that the provider was asked for and does not count are charged as one.
  const isAsked = webSearchesAt(target, request.webSearches) !== undefined;
  const isUncounted = isAsked && reported.webSearches === undefined;
  const usage = isUncounted ? { ...reported, webSearches: 1 } : reported;
  const listed = larger(costOf(usage, price), costOf(atHigherRates(usage, request), price));
  const cost = provider.reportsCost ? larger(listed, usage.cost ?? 0n) : listed;
  return {
    cost: smaller(cost, counted === undefined ? reservation.reservation.amount : MAX_COST),
    tokens: toTokens(usage),
    model: request.model,
    identifier: entry.identifier,
    estimated: counted === undefined || isUncounted,
    ...(price.webSearch === undefined && usage.webSearches ? { unpricedSearches: usage.webSearches } : {}),
  };
}
