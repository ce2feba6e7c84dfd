// Reservations: the maximum cost of a request, reserved before any provider is called (LEDGER 9).
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { toScopeName } from '#core/keys/scope-name.ts';
import { larger, smaller } from '#core/money/money.ts';
import { MAX_COST, maxCostOf, maxOutputFor, type PromptBound } from '#core/money/price.ts';
import type { Usage } from '#core/money/usage.ts';
import type { Reservation, ReservationRefusal } from '#core/ports/ledger.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { Random } from '#core/ports/platform.ts';
import type { FurtherBudget, ScopePolicy, ScopeSpend } from '#core/ports/policy.ts';
import { isEstimated, type RateEstimates } from '#core/ports/rates.ts';
import type { Candidate, Grant } from '../caller/access.ts';
import type { RequestFailure, RequestLimits } from '../caller/remaining-limits.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { OutputLimit } from '../wire/codec.ts';
import { normalizedGrowthOf, tokensPerByte } from '../wire/prompt/letters.ts';
import { LARGEST_WINDOW, mediaTokens } from '../wire/prompt/media.ts';
import { growthOf, toDenseEstimate, usualTokens } from '../wire/prompt/prompt.ts';
import { webSearchesAt } from '../wire/prompt/unmetered-features.ts';
import type { ModelRequest } from '../wire/request.ts';

const ticket: unique symbol = Symbol('ReservedGrant');

/** A grant with a reservation. Only `reserve` makes one. */
export interface ReservedGrant {
  readonly [ticket]: true;
  readonly grant: Grant;
  readonly candidates: ReadonlyArray<BoundedCandidate>;
  readonly reservation: Reservation;
}

/** A grant of a free request, without a reservation. Only `toFreeGrant` makes one. */
export interface FreeGrant extends ReservedGrant {
  readonly reservation: typeof NO_RESERVATION;
}

/** A candidate with the bounds of this request. */
export interface BoundedCandidate extends Candidate {
  readonly prompt: PromptBound;
  /**
   * The tokens that are charged for a prompt if the provider does not count it: an estimate of the text, and the
   * maximum of the media.
   */
  readonly uncountedPrompt: Pick<Usage, 'input' | 'inputMedia'>;
  /** The maximum tokens of one answer. */
  readonly maxOutput: number;
  readonly maxCost: Nano;
}

/** Tokens of an answer if neither the client nor the model entry has a limit. The gateway then sends this limit. */
const DEFAULT_OUTPUT = 16_384;
/** Tokens of an answer without a limit, as limits per minute count it (decision 0012). */
const USUAL_OUTPUT = 1024;
/** No model entry is chosen yet: its rate counts when it is called, after the reservation. */
const NO_MODEL_ENTRY_YET = [undefined];
const NO_RESERVATION = { id: 'free', amount: 0n, scopeWindows: [] } as const;
/** The maximum time of a count of tokens: a person waits for it, and the gateway can always estimate. */
const TOKEN_COUNT_TIMEOUT: Millis = 10_000;

export function createReserve({ ledger, clock, random }: Pick<GatewayDependencies, 'ledger' | 'clock' | 'random'>) {
  return async function reserve(grant: Grant, id: string): Promise<Result<ReservedGrant, RequestFailure>> {
    const { request, chargedScopes, caller, isLimited } = grant;
    const candidates = boundedCandidatesOf(grant, random);
    request.body.releaseText();
    const costliest = candidates.reduce((max, next) => (next.maxCost > max.maxCost ? next : max));
    const amount = costliest.maxCost;
    const minAmount = candidates.reduce((max, next) => larger(max, minCostOf(next, request)), 0n);
    const estimates: RateEstimates = { tokens: tokensOf(request, candidates) };
    const reserved = await ledger.reserve({
      ...estimates,
      id,
      namespace: caller.key.object.namespace,
      scopes: chargedScopes,
      amount,
      minAmount,
      model: request.model,
      identifier: costliest.entry.identifier,
      waited: caller.databaseTime,
      modelEntryLimits: isLimited ? NO_MODEL_ENTRY_YET : undefined,
    });
    if (reserved.ok) return ok({ [ticket]: true, grant, candidates, reservation: reserved.value });
    const { furtherBudgets = [] } = caller.key;
    const needs = { money: minAmount, estimates, now: clock.now(), furtherBudgets, chargedScopes };
    const rates = 'rates' in reserved.failure ? reserved.failure.rates : undefined;
    const refusal = withSpentScope(reserved.failure, minAmount, chargedScopes, ledger.knownSpend);
    return err({ failure: toFailure(refusal, request.model, needs), chargedScopes, rates });
  };
}

/**
 * Replaces `reserve` for counts of tokens: one model entry whose provider counts tokens is called, for a short time.
 */
export function toFreeGrant(grant: Grant): FreeGrant {
  const { timeouts } = grant.routing;
  const routing = { ...grant.routing, retries: 0, timeouts: { ...timeouts, total: TOKEN_COUNT_TIMEOUT } };
  const candidates = grant.candidates.filter(({ codec, provider }) => codec.countsTokens && !provider.cloud);
  const free = { ...grant, candidates, routing, isLimited: false };
  return { [ticket]: true, grant: free, candidates: boundedCandidatesOf(free), reservation: NO_RESERVATION };
}

/** The limits of a reserved request. */
export function requestLimitsOf({ grant, reservation }: ReservedGrant): RequestLimits {
  return { chargedScopes: grant.chargedScopes, rates: reservation.rates };
}

/** The maximum output of a target within the reservation. `spent`: the part of the reservation for failed calls. */
export function outputLimit(
  { grant, reservation }: ReservedGrant,
  candidate: BoundedCandidate,
  spent: Nano = 0n,
): OutputLimit {
  const { request } = grant;
  const { maxOutput, entry } = candidate;
  const affordable = maxOutputFor(reservation.amount - spent, candidate.prompt, candidate.price);
  const isUnlimited = request.limit === undefined;
  // A free answer needs no default limit, only that of the model entry.
  const isSent = isUnlimited && (affordable !== undefined || entry.maxOutputTokens !== undefined);
  const clamped = !isUnlimited && maxOutput < (request.limit ?? 0);
  const sentLimit = isSent || clamped ? maxOutput : undefined;
  if (affordable === undefined) return { max: maxOutput, sentLimit, clamped };
  const perAnswer = Number(affordable / BigInt(request.n));
  if (perAnswer < maxOutput) return { max: perAnswer, sentLimit: perAnswer, clamped: true, cutAt: affordable };
  return { max: maxOutput, sentLimit, clamped, cutAt: affordable };
}

/** The candidates with their bounds. `random`: absent for free requests. */
function boundedCandidatesOf({ request, candidates }: Grant, random?: Random): ReadonlyArray<BoundedCandidate> {
  const { body } = request;
  const normalized = BigInt(normalizedGrowthOf(body));
  const perByte = random === undefined ? undefined : tokensPerByte(body.text, random);
  // Computed at most once, because all translated requests grow alike.
  let translated: bigint | undefined;
  return candidates.map((candidate) => {
    const { entry, provider, codec, price, limits } = candidate;
    if (codec.isTranslated) translated ??= BigInt(growthOf(body.text));
    const growth = normalized + (codec.isTranslated ? (translated ?? 0n) : 0n);
    const { prompt, uncountedPrompt } = promptBound(request, candidate, { growth, perByte });
    const maxOutput = maxOutputOf(request, candidate);
    const maxCost = smaller(maxCostOf(prompt, BigInt(maxOutput) * BigInt(request.n), price), MAX_COST);
    return { entry, provider, codec, price, limits, prompt, uncountedPrompt, maxOutput, maxCost };
  });
}

/**
 * The bound of the prompt. `growth`: bytes by which the text may grow; `perByte`: approximate tokens of a byte. The
 * context window is a bound. Exceptions: a price for longer prompts, or a feature that the client requests, may mean a
 * larger window. Pages of searches may fill the window; translations have no searches.
 */
function promptBound(
  { input, webSearches, hasLargerWindow = false }: ModelRequest,
  candidate: Candidate,
  { growth, perByte }: { readonly growth: bigint; readonly perByte: number | undefined },
): Pick<BoundedCandidate, 'prompt' | 'uncountedPrompt'> {
  const { entry, price, codec } = candidate;
  const window = entry.maxInputTokens === undefined || hasLargerWindow ? undefined : BigInt(entry.maxInputTokens);
  const bound = price.tiers.some(({ above }) => window !== undefined && above >= window) ? undefined : window;
  const { maxTokens: max, estimatedTokens, prompts, media } = input;
  const ofMedia = mediaTokens(media, { isTranslated: codec.isTranslated, window: bound });
  const withMedia = (text: bigint): bigint =>
    bound === undefined ? text + ofMedia : smaller(text + ofMedia, bound * BigInt(prompts));
  const sent = withMedia(max + growth);
  const searches = webSearchesAt(candidate, webSearches);
  const maxTokens = searches === undefined ? sent : larger(sent, window ?? BigInt(LARGEST_WINDOW));
  // Media counts with its maximum. If an API has no answers, its prompts may be tokens, which count as they are.
  const isText = media.count === 0 && codec.streams !== undefined;
  const usual = isText && perByte !== undefined ? toDenseEstimate(estimatedTokens, perByte) : estimatedTokens;
  const inputMedia = ofMedia === 0n ? undefined : Number(ofMedia);
  return {
    prompt: { maxTokens, textOnly: media.count === 0, maxWebSearches: searches?.max ?? 0 },
    uncountedPrompt: { input: Number(withMedia(BigInt(usual))), inputMedia },
  };
}

/** The cost of the prompt and of the shortest useful answers. */
function minCostOf({ prompt, price, maxCost }: BoundedCandidate, { n, minOutput }: ModelRequest): Nano {
  return smaller(maxCostOf(prompt, BigInt(n) * BigInt(minOutput), price), maxCost);
}

/**
 * The maximum tokens of one answer: at most the limit of the model entry and the context window, because more would
 * reserve money without need. Without a limit of the client, an answer gets at most a quarter of the window, because
 * small models refuse a limit that leaves no tokens for the prompt; or more than the client's budget of reasoning.
 */
function maxOutputOf({ limit, minOutput, hasLargerWindow = false }: ModelRequest, { entry }: Candidate): number {
  const { maxInputTokens, maxOutputTokens = Number.POSITIVE_INFINITY } = entry;
  const window = hasLargerWindow ? LARGEST_WINDOW : (maxInputTokens ?? LARGEST_WINDOW);
  const share = maxInputTokens === undefined ? DEFAULT_OUTPUT : Math.max(1, Math.floor(maxInputTokens / 4));
  const usual = Math.min(DEFAULT_OUTPUT, share);
  const unlimited = entry.maxOutputTokens ?? (minOutput > usual ? minOutput + USUAL_OUTPUT : usual);
  // The provider would refuse a limit below the client's budget of reasoning.
  return Math.min(limit ?? unlimited, Math.max(maxOutputTokens, minOutput), window);
}

/**
 * The expected tokens of the request, for limits per minute: the estimated prompt, and the output up to the client's
 * limit. A client without a limit is expected to get a usual reply, not the longest one.
 */
function tokensOf(request: ModelRequest, candidates: ReadonlyArray<BoundedCandidate>): number {
  const max = Math.max(...candidates.map(({ maxOutput }) => maxOutput));
  return usualTokens(request.input) + Math.min(request.limit ?? USUAL_OUTPUT, max) * request.n;
}

/**
 * The estimates for the limits of a model entry. Keys of several tenants share these, so a client with a high limit
 * counts with a usual reply: it must not take tokens from others.
 */
export function modelEntryEstimatesOf({ input, limit = USUAL_OUTPUT, n }: ModelRequest): RateEstimates {
  return { tokens: usualTokens(input) + Math.min(limit * n, USUAL_OUTPUT) };
}

/** The needs of a refused request, and the time of the refusal. */
interface Needs {
  readonly money: Nano;
  readonly estimates: RateEstimates;
  readonly now: Millis;
  /** The further budgets of the key. */
  readonly furtherBudgets: ReadonlyArray<FurtherBudget>;
  readonly chargedScopes: ReadonlyArray<ScopePolicy>;
}

type BudgetRefusal = Extract<ReservationRefusal, { reason: 'exceeded' }>;

/**
 * The ledger refuses by the first budget that leaves too little. If something is left in this budget, but nothing in
 * another one, the refusal names the other one: nobody can continue before that budget is larger.
 */
function withSpentScope(
  refusal: ReservationRefusal,
  needs: Nano,
  scopes: ReadonlyArray<ScopePolicy>,
  knownSpend: (scopes: ReadonlyArray<ScopePolicy>) => ReadonlyArray<ScopeSpend | undefined>,
): ReservationRefusal {
  if (refusal.reason !== 'exceeded' || refusal.spent >= refusal.limit || needs > refusal.limit) return refusal;
  const spends = knownSpend(scopes);
  const spent = scopes.flatMap((scope, index): BudgetRefusal[] => {
    const [limit, spend] = [BigInt(scope.budget?.limit ?? 0), spends[index]];
    if (scope.budget === undefined || spend === undefined || spend.spent < limit) return [];
    return [{ ...refusal, scope, limit, spent: spend.spent, resetAt: spend.window.end }];
  });
  return spent[0] ?? refusal;
}

function toFailure(
  refusal: ReservationRefusal,
  model: string,
  { money, estimates, now, furtherBudgets, chargedScopes }: Needs,
): Failure {
  switch (refusal.reason) {
    case 'exceeded': {
      const { scope: charged, limit, spent, resetAt } = refusal;
      const scope = toScopeName(charged, chargedScopes);
      const duration = charged.budget?.duration ?? 'window';
      const isFurther = furtherBudgets.some(({ scopeId }) => scopeId === charged.scopeId);
      return { code: 'budget_exceeded', scope, limit, spent, duration, resetAt, now, needs: money, isFurther };
    }
    case 'held':
      return { code: 'budget_held', scope: toScopeName(refusal.scope, chargedScopes) };
    case 'limited': {
      const { rate, limit, retryIn } = refusal;
      const scope = refusal.scope && toScopeName(refusal.scope, chargedScopes);
      const needs = isEstimated(rate) && estimates[rate] > limit ? estimates[rate] : undefined;
      return { code: 'rate_limit_exceeded', scope, model, rate, limit, retryIn, needs };
    }
    case 'unavailable':
      return { code: 'ledger_unavailable', why: refusal.why };
  }
}
