// Failures that a client can see: one union, and one exhaustive table of their replies (DESIGN 7).
import { rowOf } from '../conditions/reasons.ts';
import type { ScopeName } from '../keys/scope-name.ts';
import { formatMoney } from '../money/money.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { RATE_KINDS, type RateKind } from '../ports/rates.ts';
import { pageUrl } from './documentation.ts';

export type Failure =
  | { readonly code: 'invalid_api_key' }
  | { readonly code: 'expired_api_key'; readonly at: Millis }
  /** `missingOwnerReason`: why a User or Team of the key cannot be charged; absent: an administrator blocked it. */
  | ({ readonly code: 'key_blocked'; readonly missingOwnerReason?: string } & ScopeName)
  | ({ readonly code: 'model_access_denied'; readonly model: string } & ScopeName)
  | { readonly code: 'model_not_found'; readonly model: string }
  | { readonly code: 'route_not_served'; readonly model: string; readonly path: string }
  | { readonly code: 'model_not_priced'; readonly model: string }
  | {
      readonly code: 'budget_exceeded';
      readonly scope: ScopeName;
      readonly limit: Nano;
      readonly spent: Nano;
      readonly duration: string;
      readonly resetAt: Millis;
      readonly now: Millis;
      /** The budget is one of the key's `budgets`. */
      readonly isFurther?: boolean;
      /** The minimum that must be reserved for this request: its maximum cost with an answer of one token. */
      readonly needs: Nano;
    }
  | { readonly code: 'budget_held'; readonly scope: ScopeName }
  /** `scope` absent: all model entries of the model are full. */
  | {
      readonly code: 'rate_limit_exceeded';
      readonly scope?: ScopeName | undefined;
      readonly model: string;
      readonly rate: RateKind;
      readonly limit: number;
      readonly retryIn: Millis;
      /** The approximate tokens of this request, if they are more than the limit. */
      readonly needs?: number | undefined;
    }
  | { readonly code: 'invalid_request'; readonly message: string; readonly param?: string }
  | { readonly code: 'request_too_large'; readonly limit: number }
  | { readonly code: 'overloaded' }
  | {
      readonly code: 'upstream_refused';
      readonly status: 400 | 413 | 422;
      readonly message: string;
      /** The provider's whole refusal, if its API is that of the client. */
      readonly body?: string | undefined;
      readonly param?: string | undefined;
    }
  | { readonly code: 'upstream_rate_limited'; readonly retryAfter: number }
  /**
   * `refusesCredentials`: the provider does not accept the credentials of the model entry. Another attempt does not
   * help.
   */
  | { readonly code: 'upstream_error'; readonly refusesCredentials?: boolean }
  | { readonly code: 'upstream_timeout' }
  | { readonly code: 'no_healthy_target'; readonly model: string }
  | { readonly code: 'ledger_unavailable'; readonly why: string }
  | { readonly code: 'client_left' }
  /** `base`: the pattern of the gateways' addresses, if several gateways share a server. */
  | { readonly code: 'not_found'; readonly path: string; readonly base?: string }
  | { readonly code: 'method_not_allowed'; readonly allow: string }
  | { readonly code: 'upgrade_not_supported' }
  | { readonly code: 'internal_error' };

export type FailureCode = Failure['code'];

/** The reply to a failure, and its log level. The reply contains less than the log. */
export interface FailureReply {
  readonly status: number;
  /** The error object that OpenAI clients already parse. */
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: FailureCode;
    /** The reset of an exceeded budget, in Unix seconds. */
    readonly resets_at?: number;
    /** The section of this code on the page of errors; absent without a site. */
    readonly doc_url?: string;
  };
  readonly headers: Readonly<Record<string, string>>;
  readonly level: 'info' | 'warn' | 'error';
}

export function toReply(failure: Failure, errorsPage = pageUrl('use/errors')): FailureReply {
  const row: Row = { ...ROWS[failure.code], ...detailsOf(failure) };
  const { status, level = 'info', param = null, headers = {}, retryAfter, resetsAt } = row;
  return {
    status,
    error: {
      message: messageOf(failure.code, failure),
      type: failure.code === 'budget_exceeded' ? 'insufficient_quota' : (TYPES[status] ?? byClass(status)),
      param,
      code: failure.code,
      ...(resetsAt === undefined ? {} : { resets_at: resetsAt }),
      ...(errorsPage === undefined ? {} : { doc_url: `${errorsPage}#${failure.code}` }),
    },
    headers: retryAfter === undefined ? headers : { 'retry-after': String(retryAfter), ...headers },
    level,
  };
}

/** The members of a reply except its message. */
interface Row {
  readonly status: number;
  /** Absent: `info`. */
  readonly level?: FailureReply['level'];
  readonly param?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Seconds. */
  readonly retryAfter?: number;
  readonly resetsAt?: number;
}

/** The table. A code without a row does not compile. */
const ROWS: Readonly<Record<FailureCode, Row>> = {
  invalid_api_key: { status: 401, headers: { 'www-authenticate': 'Bearer' } },
  expired_api_key: { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } },
  key_blocked: { status: 403 },
  model_access_denied: { status: 403, param: 'model' },
  model_not_found: { status: 404, param: 'model' },
  route_not_served: { status: 404, param: 'model' },
  model_not_priced: { status: 403, param: 'model', level: 'warn' },
  budget_exceeded: { status: 429, headers: { 'x-should-retry': 'false' } },
  budget_held: { status: 429, retryAfter: 1 },
  rate_limit_exceeded: { status: 429 },
  invalid_request: { status: 400 },
  request_too_large: { status: 413 },
  overloaded: { status: 503, retryAfter: 1, level: 'warn' },
  upstream_refused: { status: 400 },
  upstream_rate_limited: { status: 429, level: 'warn' },
  upstream_error: { status: 502, level: 'warn' },
  upstream_timeout: { status: 504, level: 'warn' },
  no_healthy_target: { status: 503, retryAfter: 5, level: 'error' },
  ledger_unavailable: { status: 503, retryAfter: 1, level: 'error' },
  client_left: { status: 499 },
  not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  upgrade_not_supported: { status: 426, headers: { upgrade: 'HTTP/1.1' } },
  internal_error: { status: 500, level: 'error' },
};

/** The members of a row that depend on the request. */
function detailsOf(failure: Failure): Partial<Row> {
  if (failure.code === 'budget_exceeded') return resetOf(failure);
  if (failure.code === 'rate_limit_exceeded') return { retryAfter: seconds(failure.retryIn) };
  if (failure.code === 'method_not_allowed') return { headers: { allow: failure.allow } };
  if (failure.code === 'upstream_rate_limited') return { retryAfter: failure.retryAfter };
  if (failure.code === 'upstream_refused') return { status: failure.status, param: failure.param };
  return failure.code === 'invalid_request' ? { param: failure.param } : {};
}

type FailureOf<Code extends FailureCode> = Extract<Failure, { code: Code }>;

/** Messages to the client. */
const MESSAGES: { readonly [Code in FailureCode]: (failure: FailureOf<Code>) => string } = {
  invalid_api_key: () =>
    'The API key is missing, unknown, deleted or rotated, or belongs to another gateway. Check the header "Authorization: Bearer <key>" and the address.',
  expired_api_key: ({ at }) => `This API key expired at ${date(at)}. Ask for a new one or a longer duration.`,
  key_blocked: keyBlocked,
  model_access_denied: ({ model, ...scope }) =>
    `${ownerOf(scope)} may not use the model ${quote(model)}. GET /models lists what this key may use; names match exactly.`,
  model_not_found: ({ model }) =>
    `The model ${quote(model)} does not exist here. GET /models lists what does; names match exactly.`,
  route_not_served: ({ model, path }) =>
    `The model ${quote(model)} is not served at POST ${path}: none of its providers has that route. Use another route, or another model.`,
  model_not_priced: ({ model }) =>
    `The model ${quote(model)} has no price, so no key can use it. Ask the platform team to set its prices.`,
  budget_exceeded: budgetExceeded,
  budget_held: ({ scope }) =>
    `The rest of the budget of ${whose(scope)} is reserved by requests in flight. Try again when they have ended.`,
  rate_limit_exceeded: rateLimitExceeded,
  invalid_request: ({ message }) => message,
  request_too_large: ({ limit }) => `The request body is larger than ${limit} bytes. Send less.`,
  overloaded: () => 'The gateway handles as many requests as its memory allows. Try again in 1 s.',
  upstream_refused: ({ message }) => message,
  upstream_rate_limited: ({ retryAfter }) => `The provider's rate limit is reached. Try again in ${retryAfter} s.`,
  upstream_error: ({ refusesCredentials }) =>
    refusesCredentials
      ? 'The provider refuses the credentials that this gateway has for the model. Ask the platform team to correct them.'
      : 'The provider failed to answer. Try again.',
  upstream_timeout: () => 'The provider did not answer in time. Try again.',
  no_healthy_target: ({ model }) =>
    `No provider of the model ${quote(model)} can be called: credentials or an address are missing. Ask the platform team to add them.`,
  ledger_unavailable: () => 'Keys and budgets cannot be checked now. Try again.',
  client_left: () => 'The client left before there was an answer.',
  not_found: notFound,
  method_not_allowed: ({ allow }) => `Use ${allow} here.`,
  upgrade_not_supported: () => 'There are no WebSockets here. Send POST requests; replies stream as events.',
  internal_error: () => 'The gateway failed. Try again; the header x-request-id names this request.',
};

function messageOf<Code extends FailureCode>(code: Code, failure: FailureOf<Code>): string {
  return MESSAGES[code](failure);
}

/** The maximum seconds of `retry-after` for a budget. */
const MAX_WAIT = 60;

/** OpenAI's error types, by status: its clients and their users already know them. */
const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

function byClass(status: number): string {
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

function notFound({ path, base = '' }: FailureOf<'not_found'>): string {
  const has = base === '' ? 'This gateway has' : 'Each gateway here has';
  return `There is nothing at ${quote(path)}. ${has} POST ${base}/chat/completions, /responses, /messages and /embeddings, GET ${base}/models and GET ${base}/key.`;
}

function budgetExceeded(failure: FailureOf<'budget_exceeded'>): string {
  const budget = `The budget of ${whose(failure.scope)}`;
  const field = budgetField(failure);
  const limit = `${formatMoney(failure.limit)} dollars per ${failure.duration}`;
  const reset = `It resets at ${date(failure.resetAt)}`;
  const amount = `at least ${formatMoney(failure.needs)} dollars`;
  const needs = `this request${unlessRetried(`, for which ${amount} must be reserved`)}`;
  // A request can cost more than a budget that is hardly used: waiting does not help.
  if (failure.limit === 0n) return `${budget} is zero: nothing may be spent. Ask for a larger ${field}.`;
  if (exceedsWindow(failure))
    return `${budget} is too small for ${needs}${unlessRetried(`: it is ${limit}`)}. Waiting does not help: send less, or ask for a larger ${field}.`;
  return failure.spent < failure.limit
    ? `${budget} leaves too little for ${needs}${unlessRetried(`: ${formatMoney(failure.spent)} of ${limit} are spent`)}. ${reset}; send less, or ask for a larger ${field}.`
    : `${budget} is exceeded${unlessRetried(`: ${limit}`)}. ${reset}; ask for a larger ${field} to continue before that.`;
}

/** The field that sets the budget. Those of a key policy can only be changed by the platform team. */
function budgetField({ scope, isFurther }: FailureOf<'budget_exceeded'>): string {
  if (scope.kind === 'namespace') return 'maxBudget in perNamespace of the key policy';
  if (scope.countedFrom !== undefined) return 'maxBudget in perKey of the key policy';
  if (scope.kind === 'model') return 'maxBudget in modelMaxBudget';
  return isFurther === true ? 'maxBudget in budgets' : 'maxBudget';
}

/**
 * The part of a sentence; empty if agents would take it for a temporary failure and repeat the request: opencode
 * searches every message for these words and numbers, which amounts may contain too ("$500").
 */
function unlessRetried(part: string): string {
  return RETRIED.test(part) ? '' : part;
}

const RETRIED =
  /429|50[0234]|524|rate[ _-]limit|too many requests|try again|overloaded|unavailable|terminated|timeout|(?:server|internal|network|connection)[ _-]error/i;

/**
 * The reset of the budget; none if even a whole window is too small. A reset that is far away is not in `retry-after`,
 * because agents wait as long as it requires, even for days.
 */
function resetOf(failure: FailureOf<'budget_exceeded'>): Partial<Row> {
  if (exceedsWindow(failure)) return {};
  const wait = seconds(failure.resetAt - failure.now);
  const resetsAt = Math.ceil(failure.resetAt / 1000);
  return wait > MAX_WAIT ? { resetsAt } : { resetsAt, retryAfter: wait };
}

/** Whether not even the budget of a whole window covers the request. */
function exceedsWindow({ needs, limit }: FailureOf<'budget_exceeded'>): boolean {
  return needs > limit || limit === 0n;
}

/** `key "billing"`, `model "gpt" of key "billing"`, `namespace "research" on instance "default/main"`. */
function whose(scope: ScopeName): string {
  return unlessRetried(nameOf(scope)) === '' ? `this ${scope.kind}` : nameOf(scope);
}

function nameOf({ kind, name, of, keyPolicy }: ScopeName): string {
  const place = kind === 'namespace' ? 'on instance' : 'of key';
  const policy = kind === 'team' && keyPolicy !== undefined ? ` of key policy ${quote(keyPolicy)}` : '';
  return `${kind} ${quote(name)}${of === undefined ? '' : ` ${place} ${quote(of)}`}${policy}`;
}

/** The beginning of a sentence: `This API key`, `This API key's user "alice"`, `The team "web" of key policy "labs"`. */
function ownerOf(scope: ScopeName): string {
  if (scope.kind === 'key') return 'This API key';
  return scope.kind === 'team' && scope.keyPolicy !== undefined
    ? `The ${nameOf(scope)}`
    : `This API key's ${nameOf(scope)}`;
}

function rateLimitExceeded(failure: FailureOf<'rate_limit_exceeded'>): string {
  const { scope, model, rate, limit, retryIn, needs } = failure;
  const again = `Try again in ${seconds(retryIn)} s.`;
  // Clients do not see the rate of a model entry: it is between the gateway and its provider.
  if (scope === undefined) return `The rate limits of all providers of the model ${quote(model)} are reached. ${again}`;
  const { units, advice } = RATE_KINDS[rate];
  const reached = `The rate limit of ${nameOf(scope)} is reached: ${limit} ${units[limit === 1 ? 0 : 1]}.`;
  if (needs === undefined) return `${reached} ${again}`;
  return `${reached} This request uses about ${needs}, so it needs a whole minute without other requests. ${again}${advice === undefined ? '' : ` Or ${advice}.`}`;
}

function keyBlocked({ missingOwnerReason, ...scope }: FailureOf<'key_blocked'>): string {
  const { kind, keyPolicy } = scope;
  if (kind === 'namespace')
    return `The team of the key policy${keyPolicy === undefined ? '' : ` ${quote(keyPolicy)}`} is missing or not ready, so requests of ${nameOf(scope)} cannot be charged. Ask the platform team to correct the team or the key policy.`;
  const why = rowOf(missingOwnerReason)?.missingOwnerText;
  const whom = keyPolicy === undefined ? 'its owner' : 'the platform team';
  return why === undefined
    ? `${ownerOf(scope)} is blocked. Ask ${whom} to unblock it.`
    : `${why}, so its requests cannot be charged. Ask the owner of the key to correct that, or to name another.`;
}

/** Whole seconds, never early, never zero. */
function seconds(millis: Millis): number {
  return Math.max(1, Math.ceil(millis / 1000));
}

/** In whole seconds, never early. */
function date(at: Millis): string {
  return new Date(Math.ceil(at / 1000) * 1000).toISOString().replace('.000', '');
}

/** A name from a request, cut, because it may be as long as the body. */
function quote(text: string): string {
  return JSON.stringify(text.length > 256 ? `${text.slice(0, 256)}…` : text);
}
