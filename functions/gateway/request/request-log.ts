// The log line and the metrics of a request, written once, at its end. No prompt, no key value and no provider's
// message is in them.
import type { Failure, FailureReply } from '#core/failure/failure.ts';
import { formatMoney } from '#core/money/money.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Reservation, Settlement } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import type { KeyRecord, ScopePolicy } from '#core/ports/policy.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { WireError } from '../wire/codec.ts';
import { createKeyFields } from './key-fields.ts';
import type { RequestMemory } from './memory-budget.ts';
import type { RequestContext } from './request-context.ts';

/** The end of a reply. `failed`: the provider ended its stream with an error. */
export type ReplyEnd = 'complete' | 'failed' | 'cut' | 'broken' | 'client_left' | 'timeout';

/** A failed attempt, with the provider's own status and code. */
interface FailedAttempt {
  readonly failure: Failure;
  readonly status?: number;
  readonly upstreamCode?: string | undefined;
}

type Dependencies = Pick<GatewayDependencies, 'clock' | 'log' | 'metrics'>;
type Labels = Readonly<Record<string, string>>;

/** Fields of keys, and labels of all metrics, of the requests of one route. */
interface RouteLabels {
  readonly ofKey: (record: KeyRecord) => Readonly<Record<string, unknown>>;
  readonly ofModel: (model: string) => ModelLabels;
  readonly ofEntry: (identifier: string) => (outcome: string) => Labels;
}

type ModelLabels = ReturnType<typeof labelsOfModel>;

/** The maximum length of a logged name: the name of a refused model may be any text. */
const MAX_NAME = 256;
const MAX_CODE = 64;

export function createRequestLogs(deps: Dependencies, route: string) {
  const labels: RouteLabels = {
    ofKey: createKeyFields(),
    ofModel: memoize((model) => labelsOfModel({ route, model })),
    ofEntry: memoize((identifier) => memoize((outcome) => ({ identifier, outcome }))),
  };
  return (context: RequestContext) => new RequestLog(deps, labels, { context, route });
}

function labelsOfModel(model: Labels) {
  return {
    model,
    input: { ...model, kind: 'input' },
    output: { ...model, kind: 'output' },
    ended: memoize((status) => memoize((code) => ({ ...model, status, code }))),
  };
}

/** Returns the same object for the same text, because metrics find known label objects faster. There are few texts. */
function memoize<T extends {}>(make: (word: string) => T): (word: string) => T {
  const known = new Map<string, T>();
  return (word) => {
    const before = known.get(word);
    if (before !== undefined) return before;
    const value = make(word);
    known.set(word, value);
    return value;
  };
}

/** The client of a request, its log line and its memory share. */
export interface ClientContext {
  readonly client: HttpExchange;
  readonly log: RequestLog;
  readonly share: RequestMemory;
}

/** The log line of one request, filled step by step. A class, because each request has one: methods are shared. */
export class RequestLog {
  readonly context: RequestContext;
  readonly #deps: Dependencies;
  readonly #labels: RouteLabels;
  #model: ModelLabels;
  readonly #began: Millis;
  readonly #fields: Record<string, unknown>;
  #attempts = 0;
  readonly #skipped: string[] = [];

  constructor(deps: Dependencies, labels: RouteLabels, { context, route }: { context: RequestContext; route: string }) {
    this.context = context;
    this.#deps = deps;
    this.#labels = labels;
    this.#model = labels.ofModel('');
    this.#began = deps.clock.now();
    const { requestId, clientRequestId } = context;
    this.#fields = clientRequestId === undefined ? { requestId, route } : { requestId, route, clientRequestId };
  }

  addCaller(record: KeyRecord): void {
    Object.assign(this.#fields, this.#labels.ofKey(record));
  }

  /** Adds the model, once it is known to be a model of the instance. It becomes a label, and labels must be few. */
  addModel(name: string, stream: boolean): void {
    this.#fields.model = name;
    this.#fields.stream = stream;
    this.#model = this.#labels.ofModel(name);
  }

  /** Adds a model entry that was not called, with the reason. */
  addSkipped(identifier: string, why: string): void {
    this.#skipped.push(`${identifier}: ${why}`);
    this.#fields.skipped = this.#skipped;
    this.#countAttempt(identifier, 'skipped');
  }

  /** Adds a call of a model entry. `failed`: undefined if it answered. */
  addAttempt(identifier: string, failed: FailedAttempt | undefined): void {
    const fields = this.#fields;
    this.#attempts += 1;
    fields.identifier = identifier;
    fields.attempts = this.#attempts;
    if (failed?.status !== undefined) fields.upstreamStatus = failed.status;
    if (failed?.upstreamCode !== undefined) fields.upstreamCode = failed.upstreamCode;
    this.#countAttempt(identifier, failed?.failure.code ?? 'answered');
  }

  addSettlement(reservation: Reservation, { cost, tokens, identifier, estimated, unpricedSearches }: Settlement): void {
    const fields = this.#fields;
    fields.identifier = identifier;
    fields.tokens = tokens;
    fields.cost = formatMoney(cost);
    fields.estimated = estimated;
    const { metrics } = this.#deps;
    const { model, input, output } = this.#model;
    metrics.add('gateway_operator_tokens_total', input, tokens.input);
    metrics.add('gateway_operator_tokens_total', output, tokens.output);
    // Metrics are floats, for graphs. The ledger counts in integers.
    metrics.add('gateway_operator_cost_dollars_total', model, Number(cost) / 1e9);
    if (estimated) metrics.add('gateway_operator_estimated_replies_total', model);
    if (unpricedSearches !== undefined) {
      fields.unpricedSearches = unpricedSearches;
      metrics.add('gateway_operator_unpriced_searches_total', model, unpricedSearches);
    }
    if (cost > reservation.amount) metrics.add('gateway_operator_replies_above_reservation_total', model);
  }

  writeRefusal(failure: Failure, { status, level }: FailureReply): void {
    this.#fields.status = status;
    this.#fields.code = failure.code;
    Object.assign(this.#fields, detailsOf(failure));
    this.#write(level, status, failure.code);
  }

  /** Counts the time until the first byte of a stream. */
  countFirstByte(): void {
    const seconds = (this.#deps.clock.now() - this.#began) / 1000;
    this.#deps.metrics.observe('gateway_operator_first_byte_seconds', seconds, this.#model.model);
  }

  /** Adds the error with which the provider ended a stream. */
  addStreamError({ code }: Pick<WireError, 'code'>): void {
    if (code !== undefined) this.#fields.upstreamCode = code.slice(0, MAX_CODE);
  }

  /** Writes the line of a request with a reply. `end`: how the reply ended. */
  writeReply(status: number, end: ReplyEnd): void {
    this.#fields.status = status;
    this.#fields.end = end;
    this.#write(end === 'broken' || end === 'failed' || end === 'timeout' ? 'warn' : 'info', status, end);
  }

  #countAttempt(identifier: string, outcome: string): void {
    this.#deps.metrics.add('gateway_operator_upstream_attempts_total', this.#labels.ofEntry(identifier)(outcome));
  }

  #write(level: FailureReply['level'], status: number, code: string): void {
    const { clock, log, metrics } = this.#deps;
    const ms = clock.now() - this.#began;
    this.#fields.ms = ms;
    log[level]('request', this.#fields);
    metrics.add('gateway_operator_requests_total', this.#model.ended(String(status))(code));
    metrics.observe('gateway_operator_request_seconds', ms / 1000, this.#model.model);
  }
}

/** Details of a failure that only the log shows. */
function detailsOf(failure: Failure): Readonly<Record<string, unknown>> {
  if (failure.code === 'ledger_unavailable') return { why: failure.why };
  if (failure.code === 'rate_limit_exceeded') return { rate: failure.rate, ...scopeIn(failure) };
  if ('model' in failure) return { model: failure.model.slice(0, MAX_NAME) };
  return 'scope' in failure ? scopeIn(failure) : {};
}

function scopeIn({ scope }: { readonly scope?: Pick<ScopePolicy, 'kind' | 'name'> | undefined }) {
  return scope === undefined ? {} : { scope: `${scope.kind}/${scope.name}` };
}
