// Rates as arguments of the script and in its reply; the text of a limit is made once (script-rates.ts).
import type {
  MoveAnswer,
  MoveOperation,
  RateKind,
  RateLeft,
  RateLimit,
  RateRefusal,
  RateReply,
  RateRequest,
  RatesLeft,
} from '#core/ports/rates.ts';
import { listOf, textOf } from './texts.ts';

/** The largest count: above every limit, and exact as a Lua number. */
const MAX_COUNT = 1_000_000_000_000;

export const fromCount = (count: number): string => `${Math.max(0, Math.min(MAX_COUNT, Math.ceil(count)))}`;

const known = new WeakMap<RateLimit, ReadonlyArray<string>>();

function fromLimit(limit: RateLimit): ReadonlyArray<string> {
  const before = known.get(limit);
  if (before !== undefined) return before;
  const { id, requests = '', tokens = '', parallel = '' } = limit;
  const text = [id, `${requests}`, `${tokens}`, `${parallel}`];
  known.set(limit, text);
  return text;
}

export const fromRates = ({ tokens, limits, entries }: RateRequest) => ({
  tokens: fromCount(tokens),
  limits: limits.map(fromLimit),
  entries: entries.map((entry) => (entry === undefined ? '' : fromLimit(entry))),
});

export const fromMove = ({ id, tokens, to }: MoveOperation) => ({
  ...{ id, tokens: fromCount(tokens) },
  ...(to === undefined ? {} : { to: fromLimit(to) }),
});

/** Rates by hold id. */
export function toRateReplies(replies: ReadonlyArray<unknown>): ReadonlyMap<string, RateReply> {
  return new Map(
    replies.map((one) => {
      const [id, texts] = listOf(one);
      const [chosen, ...left] = listOf(texts).map(textOf);
      return [textOf(id), { ...(chosen === '' ? {} : { entry: Number(chosen) }), left: left.map(toLeft) }];
    }),
  );
}

/** The remaining requests and tokens: `remaining:reset remaining:reset`; `:` without a limit. */
function toLeft(text: string): RatesLeft {
  const [requests, tokens] = text.split(' ').map(toOne);
  return { ...(requests === undefined ? {} : { requests }), ...(tokens === undefined ? {} : { tokens }) };
}

function toOne(text: string): RateLeft | undefined {
  const [remaining = '', resetIn = ''] = text.split(':');
  return remaining === '' ? undefined : { remaining: Number(remaining), resetIn: Number(resetIn) };
}

export function toRefusal([limit, rate, retryIn]: ReadonlyArray<string>): RateRefusal {
  return { limit: Number(textOf(limit)), rate: kindOf(rate), retryIn: Number(textOf(retryIn)) };
}

export function toMove([rate, retryIn]: ReadonlyArray<string>): MoveAnswer {
  return rate === undefined ? undefined : { rate: kindOf(rate), retryIn: Number(textOf(retryIn)) };
}

function kindOf(text: string | undefined): RateKind {
  if (text === 'requests' || text === 'tokens' || text === 'parallel') return text;
  throw new Error(`the store returned an unknown rate "${text}"`);
}
