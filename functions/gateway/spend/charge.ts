// Charges of calls: by the provider's count or by an estimate, together with earlier calls that failed (LEDGER 9, 10).
import { larger, smaller } from '#core/money/money.ts';
import { costOf, hasMediaRate, MAX_COST } from '#core/money/price.ts';
import { NO_TOKENS, toTokens, type Usage } from '#core/money/usage.ts';
import type { Settlement } from '#core/ports/ledger.ts';
import type { Candidate } from '../caller/access.ts';
import type { OutputSize, Recipient, Reply } from '../wire/codec.ts';
import { toHigherRates, withOutputMedia } from '../wire/prompt/higher-rates.ts';
import { estimateTokens } from '../wire/prompt/prompt.ts';
import { webSearchesAt } from '../wire/prompt/unmetered-features.ts';
import type { BoundedCandidate, ReservedGrant } from './reserve.ts';

/** A call of a provider, and the charge of earlier ones that failed. */
export interface ChargedCall {
  readonly reserved: ReservedGrant;
  readonly target: BoundedCandidate & Pick<Recipient, 'limit'>;
  readonly failedCharge: Settlement | undefined;
}

/** The charge of a whole reply. */
export function settlementOfReply(call: ChargedCall, reply: Reply): Settlement {
  return withFailedCalls(call, settlementOfWhole(call, reply));
}

/** The charge of a reply without earlier calls. A count of zero output is ignored if the reply has an answer. */
function settlementOfWhole(call: ChargedCall, { usage, size }: Reply): Settlement {
  if (usage !== undefined && usage.output > 0) {
    return settlementOf(call, countWithMedia(usage, call.target, size), {});
  }
  const { outputBytes, media } = size();
  const output = estimateOutput({ outputBytes, media }, 1);
  if (usage === undefined) return settlementOf(call, undefined, output);
  if (outputBytes + media === 0) return settlementOf(call, usage, {});
  return settlementOfPartialCount(call, usage, output);
}

/** The charge of a failed call. `received`: the bytes of its answer, or the provider's count. */
export function settlementOfFailed(call: ChargedCall, received: number | Usage): Settlement {
  const [counted, output] = typeof received === 'number' ? [undefined, estimateTokens(received)] : [received, 0];
  return withFailedCalls(call, settlementOf(call, counted, { output }));
}

/**
 * The count, with its output as media if the answer has media that the count does not separate. Only models with a rate
 * for media need that, so most answers are not sized.
 */
export function countWithMedia(usage: Usage, { price }: Candidate, size: () => OutputSize): Usage {
  return hasMediaRate(price) && size().media > 0 ? withOutputMedia(usage) : usage;
}

/** The estimated tokens of an output: at least `min`. */
export function estimateOutput({ outputBytes, media }: OutputSize, min: number): Pick<Usage, 'output' | 'outputMedia'> {
  const outputMedia = Math.ceil(media);
  const output = Math.max(min, estimateTokens(outputBytes) + outputMedia);
  return outputMedia === 0 ? { output } : { output, outputMedia };
}

/** A charge together with that of earlier failed calls. An estimated charge is at most the rest of the reservation. */
export function withFailedCalls(
  { reserved: { reservation }, failedCharge }: ChargedCall,
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
 * The charge of an answer that was not counted to its end: the count so far, or the estimate if that is more. The
 * estimate is at most the reservation.
 */
export function settlementOfPartialCount(call: ChargedCall, counted: Usage, output: Partial<Usage>): Settlement {
  const minimum = settlementOf(call, counted, {});
  const estimate = settlementOf(call, undefined, { ...counted, ...output });
  return estimate.cost >= minimum.cost ? estimate : minimum;
}

/** The charge of a call: by the provider's count, else by this estimate, which is at most the reservation. */
export function settlementOf(
  { reserved, target }: ChargedCall,
  counted: Usage | undefined,
  estimated: Partial<Usage>,
): Settlement {
  const { entry, price, provider, limit, uncountedPrompt } = target;
  const { request } = reserved.grant;
  const { input: prompt = 0, output = 0, ...rest } = estimated;
  // A count of zero is ignored, because no prompt has zero tokens.
  const promptTokens = prompt > 0 ? { input: prompt } : uncountedPrompt;
  // The client is charged for at most the tokens that the limit allowed: the estimate may be too high, or the provider
  // exceeded the limit.
  const reported = counted ?? {
    ...NO_TOKENS,
    ...rest,
    ...promptTokens,
    output: Math.min(output, limit.max * request.n),
  };
  // Searches that the provider does not count are charged as one search.
  const isRequested = webSearchesAt(target, request.webSearches) !== undefined;
  const isUncounted = isRequested && reported.webSearches === undefined;
  const usage = isUncounted ? { ...reported, webSearches: 1 } : reported;
  const higher = toHigherRates(usage, request);
  const atUsualRates = costOf(usage, price);
  const listed = higher === usage ? atUsualRates : larger(atUsualRates, costOf(higher, price));
  const cost = provider.reportsCost ? larger(listed, usage.cost ?? 0n) : listed;
  return {
    cost: smaller(cost, counted === undefined ? reserved.reservation.amount : MAX_COST),
    tokens: toTokens(usage),
    model: request.model,
    identifier: entry.identifier,
    estimated: counted === undefined || isUncounted,
    ...(price.webSearch === undefined && usage.webSearches ? { unpricedSearches: usage.webSearches } : {}),
  };
}
