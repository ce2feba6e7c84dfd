// Can you pay? The most that the dearest target could cost is set aside before anybody is called (LEDGER 9).
import type { Failure } from '#core/failure.ts';
import type { Hold, HoldRefusal, Ledger, RateView } from '#core/ports/ledger.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { MAX_COST, maxCostOf, maxOutputFor, type Price, type PromptBound } from '#core/price.ts';
import { providerOf } from '#core/providers.ts';
import { reasonOf } from '#core/reason.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { SnapshotEntry } from '#core/snapshot.ts';
import type { Grant } from './authorize.ts';
import type { GatewayDeps } from './deps.ts';
import { limitOf } from './entry-limits.ts';
import type { Rank, Ranking } from './rank.ts';
import type { Line } from './record.ts';
import type { Candidate } from './terms.ts';
import type { Chat } from './wire/chat.ts';
import type { OutputLimit } from './wire/dialect.ts';
import { growthOf } from './wire/prompt.ts';

const made: unique symbol = Symbol('Reservation');

/** A grant with money set aside for it. Only `reserve` makes one. */
export interface Reservation {
  readonly [made]: true;
  readonly grant: Grant;
  /** Where entries are limited: in this order their room was asked for. */
  readonly ranking: Ranking | undefined;
  readonly hold: Hold;
  /** A provider was asked: from then on the hold is charged, whatever is thrown. */
  isCalled: boolean;
}

/** Why nothing is set aside, and what is left of the caller's rates where that is known. */
export interface Unreserved {
  readonly failure: Failure;
  readonly rates?: RateView | undefined;
}

/** `waited`: for so long the database was asked who it is. */
export type Reserve = (grant: Grant, line: Line, waited: Millis) => Promise<Result<Reservation, Unreserved>>;

/** Tokens of output where neither the client nor the entry names a limit. It is sent then, so that it is one. */
const DEFAULT_OUTPUT = 16_384;
/** Tokens of an answer whose client names no limit, as far as limits per minute go (decision: rate limits). */
const USUAL_OUTPUT = 1024;

/** Where entries are limited they are ranked first: the best that has room is taken with the money. */
export function createReserve({ ledger, clock }: Pick<GatewayDeps, 'ledger' | 'clock'>, rank: Rank): Reserve {
  return async function reserve(grant, line, waited) {
    const isLimited = grant.candidates.some(({ entry }) => limitOf(entry) !== undefined);
    const ranking = isLimited ? rank(grant, line) : undefined;
    const { amount, minAmount, identifier } = dearest(grant);
    const { model } = grant.chat;
    const entries = ranking?.order.map(({ entry }) => limitOf(entry)) ?? [];
    const tokens = tokensOf(grant);
    const id = line.names.requestId;
    const money = { scopes: grant.payers, amount, minAmount, model, identifier };
    const held = await ledger.hold({ id, ...money, tokens, entries, waited });
    ranking?.settled();
    if (held.ok) return ok({ [made]: true, grant, ranking, hold: held.value, isCalled: false });
    const rates = 'rates' in held.failure ? held.failure.rates : undefined;
    const needs = { money: minAmount, tokens };
    return err({ failure: toFailure(held.failure, { model, now: clock.now(), needs }), rates });
  };
}

/** What a target may produce within what is left of the hold. */
export function outputLimit({ grant, hold }: Reservation, { entry, price }: Candidate, spent = 0n): OutputLimit {
  const { chat } = grant;
  const most = outputMost(chat, { entry, price });
  if (!grant.budgeted || price === undefined) return { most, clamped: false };
  const affordable = maxOutputFor(hold.amount - spent, inputMost(chat, { entry, price }), price);
  if (affordable === undefined) return { most, clamped: false };
  const perAnswer = Number(affordable / BigInt(chat.n));
  if (perAnswer < most) return { most: perAnswer, send: perAnswer, clamped: true, cutAt: affordable };
  const unlimited = clientLimit(chat) === undefined;
  return { most, ...(unlimited ? { send: most } : {}), clamped: false, cutAt: affordable };
}

/** Whether the hold, of which so much is spent, still pays for all that this target could cost. */
export function covers({ grant, hold }: Reservation, { entry, price }: Candidate, spent: Nano): boolean {
  return price === undefined || spent + mostFor(grant.chat, { entry, price }) <= hold.amount;
}

/** Gives the money back: nothing was consumed. A release that fails is the lease's business. */
export async function release(
  { hold }: Reservation,
  { ledger, log }: { readonly ledger: Ledger; readonly log: GatewayDeps['log'] },
  how: { readonly called: boolean },
): Promise<void> {
  try {
    await ledger.release(hold, how);
  } catch (error) {
    log.error('a hold could not be released', {
      hold: hold.id,
      why: reasonOf(error),
    });
  }
}

function dearest(grant: Grant): { readonly amount: Nano; readonly minAmount: Nano; readonly identifier: string } {
  let amount = 0n;
  let minAmount = 0n;
  let identifier = grant.candidates[0]?.entry.identifier ?? '';
  for (const candidate of grant.candidates) {
    const { entry, price } = candidate;
    if (price === undefined) continue;
    const most = mostFor(grant.chat, { entry, price });
    minAmount = larger(
      minAmount,
      smaller(maxCostOf(inputMost(grant.chat, candidate), BigInt(grant.chat.n), price), most),
    );
    if (most <= amount) continue;
    amount = most;
    identifier = entry.identifier;
  }
  return { amount, minAmount, identifier };
}

function mostFor(chat: Chat, { entry, price }: Priced): Nano {
  const output = BigInt(outputMost(chat, { entry, price })) * BigInt(chat.n);
  return smaller(maxCostOf(inputMost(chat, { entry, price }), output, price), MAX_COST);
}

interface Priced extends Candidate {
  readonly price: Price;
}

function larger(a: Nano, b: Nano): Nano {
  if (a > b) return a;
  return b;
}

function smaller(a: Nano, b: Nano): Nano {
  if (a < b) return a;
  return b;
}

function inputMost(chat: Chat, { entry }: Candidate): PromptBound {
  const { most, textOnly } = chat.input;
  const sent = isTranslated(entry) ? most + growthIn(chat) : most;
  const window = entry.maxInputTokens;
  const maxWebSearches = chat.webSearches?.max ?? 0;
  return { maxTokens: window !== undefined && BigInt(window) < sent ? BigInt(window) : sent, textOnly, maxWebSearches };
}

/** Its bytes do not reach the provider as they are. */
function isTranslated({ provider }: SnapshotEntry): boolean {
  return providerOf(provider).dialect !== 'openai';
}

/** Asked several times of each request. */
const growths = new WeakMap<Chat, bigint>();

function growthIn(chat: Chat): bigint {
  const known = growths.get(chat) ?? BigInt(growthOf(chat.bytes));
  growths.set(chat, known);
  return known;
}

/** Tokens of one answer, at most. */
function outputMost(chat: Chat, { entry }: Candidate): number {
  return clientLimit(chat) ?? entry.maxOutputTokens ?? Math.min(DEFAULT_OUTPUT, shareOf(entry.maxInputTokens));
}

/** A small model would refuse a limit that leaves no room for the prompt: its answers may fill a quarter of its window. */
function shareOf(window: number | undefined): number {
  return window === undefined ? DEFAULT_OUTPUT : Math.max(1, Math.floor(window / 4));
}

function clientLimit({ limits }: Chat): number | undefined {
  const { max_completion_tokens: one, max_tokens: other } = limits;
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

/**
 * About how many tokens the request will use, for limits per minute: the prompt's estimate, and the output that the client
 * asked for at most. A client that names no limit is expected to get a usual reply, not the longest that there is.
 */
function tokensOf({ chat, candidates }: Grant): number {
  const most = candidates.reduce((sofar, candidate) => Math.max(sofar, outputMost(chat, candidate)), 0);
  return chat.input.estimate + Math.min(clientLimit(chat) ?? USUAL_OUTPUT, most) * chat.n;
}

const named = ({ kind, name, of }: ScopePolicy) => ({ kind, name, ...(of === undefined ? {} : { of }) });

interface Asked {
  readonly model: string;
  readonly now: number;
  readonly needs: { readonly money: Nano; readonly tokens: number };
}

function toFailure(refusal: HoldRefusal, { model, now, needs }: Asked): Failure {
  switch (refusal.reason) {
    case 'exceeded': {
      const { limit, spent, resetAt } = refusal;
      const duration = refusal.scope.budget?.duration ?? 'window';
      return {
        code: 'budget_exceeded',
        ...named(refusal.scope),
        limit,
        spent,
        duration,
        resetAt,
        now,
        needs: needs.money,
      };
    }
    case 'busy':
      return { code: 'budget_held', ...named(refusal.scope) };
    case 'limited': {
      const { scope, rate, limit, retryIn } = refusal;
      const whose = scope === undefined ? {} : { scope: { kind: scope.kind, name: scope.name } };
      const tooMany = rate === 'tokens' && needs.tokens > limit ? { needs: needs.tokens } : {};
      return { code: 'rate_limit_exceeded', ...whose, model, rate, limit, retryIn, ...tooMany };
    }
    case 'unavailable':
      return { code: 'ledger_unavailable', why: refusal.why };
  }
}
