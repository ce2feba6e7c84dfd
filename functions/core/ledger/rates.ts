// Rates of a request: the question to the store, and the view of the client (decision 0012).
import type { HoldRefusal, HoldRequest, RateView } from '../ports/ledger.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import type { RateLimit, RateRefusal, RateReply, RateRequest, RatesLeft } from '../ports/rates.ts';

/** The rates asked of the store, and the scopes whose limits they are. */
export interface RatesAsked {
  readonly request: RateRequest;
  readonly scopes: ReadonlyArray<ScopePolicy>;
}

/** Limits, compiled once per policy object. */
const known = new WeakMap<ScopePolicy, RateLimit>();

/** Undefined where neither a scope nor an entry is limited. Entries that are not limited count too: the hold may move to one that is. */
export function ratesOf({ scopes, entries = NO_ENTRIES, tokens = 0 }: HoldRequest): RatesAsked | undefined {
  if (!scopes.some(hasLimits) && entries.length === 0) return undefined;
  const limited = scopes.filter(hasLimits);
  return { request: { tokens, limits: limited.map(limitOf), entries }, scopes: limited };
}

const NO_ENTRIES: NonNullable<HoldRequest['entries']> = [];
const hasLimits = ({ limits }: ScopePolicy): boolean => limits !== undefined;

function limitOf(scope: ScopePolicy): RateLimit {
  const before = known.get(scope);
  if (before !== undefined) return before;
  const { rpmLimit, tpmLimit, maxParallelRequests } = scope.limits ?? {};
  const limit = {
    id: `scope ${scope.scopeId}`,
    ...(rpmLimit === undefined ? {} : { requests: rpmLimit }),
    ...(tpmLimit === undefined ? {} : { tokens: tpmLimit }),
    ...(maxParallelRequests === undefined ? {} : { parallel: maxParallelRequests }),
  };
  known.set(scope, limit);
  return limit;
}

/** The refusal that the gateway gets when a rate refuses. */
export function toLimited(asked: RatesAsked, refusal: RateRefusal, reply: RateReply): HoldRefusal {
  const { limits, entries } = asked.request;
  const { rate, retryIn } = refusal;
  const scope = asked.scopes[refusal.limit];
  const refused = limits[refusal.limit] ?? entries[refusal.limit - limits.length];
  const limit = refused?.[rate];
  if (limit === undefined) throw new Error('the store refused for an unknown limit');
  return {
    ...{ reason: 'limited', rate, limit, retryIn, rates: toView(asked, reply) },
    ...(scope === undefined ? {} : { scope }),
  };
}

/** The scope that leaves the least, the first of equals. Rates of model entries are not shown to clients. */
export function toView({ request: { limits } }: RatesAsked, { left }: RateReply): RateView {
  const requests = tightest('requests', limits, left);
  const tokens = tightest('tokens', limits, left);
  return { ...(requests === undefined ? {} : { requests }), ...(tokens === undefined ? {} : { tokens }) };
}

function tightest(
  what: keyof RatesLeft & keyof RateView,
  limits: ReadonlyArray<RateLimit>,
  left: ReadonlyArray<RatesLeft>,
): RateView['requests'] {
  let lowest: RateView['requests'];
  limits.forEach((of, index) => {
    const limit = of[what];
    const one = left[index]?.[what];
    if (limit === undefined || one === undefined) return;
    if (lowest === undefined || one.remaining < lowest.remaining) lowest = { ...one, limit };
  });
  return lowest;
}
