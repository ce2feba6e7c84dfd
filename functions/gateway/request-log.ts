// The log line and the metrics of a request, written once, at its end; no prompt, no key, no provider's message.
import type { Failure, FailureReply } from '#core/failure.ts';
import { formatMoney } from '#core/money.ts';
import type { Hold, Settlement } from '#core/ports/ledger.ts';
import type { KeyRecord, ScopePolicy } from '#core/ports/policy.ts';
import type { GatewayDeps } from './deps.ts';
import type { RequestContext } from './respond.ts';
import type { AttemptFailure } from './upstream-reply.ts';
import type { ReplyEnd } from './wire/stream-end.ts';

/** Facts about one request, collected on its way. */
export type RequestLog = ReturnType<ReturnType<typeof createRequestLogs>>;

/** The longest logged name: a refused model may be any text. */
const MAX_NAME = 256;

type Labels = Readonly<Record<string, string>>;

/** Returns the same object for the same words, so that metrics need not read it again. The words are few. */
function keep(...names: string[]): (...words: string[]) => Labels {
  const known = new Map<string, Labels>();
  return (...words) => {
    const key = words.join('\n');
    const labels = known.get(key) ?? Object.fromEntries(names.map((name, at) => [name, words[at] ?? '']));
    known.set(key, labels);
    return labels;
  };
}

export function createRequestLogs({ clock, log, metrics }: Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>) {
  const requestLabels = keep('route', 'model', 'status', 'code');
  const modelLabels = keep('route', 'model');
  const tokenLabels = keep('route', 'model', 'kind');
  const attemptLabels = keep('identifier', 'outcome');

  return function openRequestLog(context: RequestContext, route: string) {
    const began = clock.now();
    const { requestId, clientRequestId } = context;
    const fields: Record<string, unknown> = { requestId, route };
    if (clientRequestId !== undefined) fields.clientRequestId = clientRequestId;
    let model = '';
    let attempts = 0;
    const skipped: string[] = [];

    return {
      context,
      caller: ({ key, scopes }: KeyRecord) => {
        fields.alias = key.name;
        fields.key = `${key.object.namespace}/${key.object.name}`;
        // Names, tags and metadata that people gave the key and its user, to group log lines by.
        const user = scopes.find(({ kind }) => kind === 'user');
        if (user !== undefined) fields.user = user.alias ?? user.name;
        if (key.tags !== undefined) fields.tags = key.tags;
        if (key.metadata !== undefined) fields.metadata = key.metadata;
      },
      /** The model, once it is known to be one of ours: the model becomes a label, and labels must be few. */
      model: (name: string, stream: boolean) => {
        Object.assign(fields, { model: name, stream });
        model = name;
      },
      /** An entry that could not even be called, and why. */
      skipped: (identifier: string, why: string) => {
        skipped.push(`${identifier}: ${why}`);
        fields.skipped = skipped;
        metrics.add('gateway_operator_upstream_attempts_total', attemptLabels(identifier, 'skipped'));
      },
      /** A call of an entry, and how it failed, if it did. */
      attempt: (identifier: string, failed: AttemptFailure | undefined) => {
        attempts += 1;
        Object.assign(fields, { identifier, attempts });
        if (failed?.status !== undefined) fields.upstreamStatus = failed.status;
        if (failed?.upstreamCode !== undefined) fields.upstreamCode = failed.upstreamCode;
        const outcome = failed?.failure.code ?? 'answered';
        metrics.add('gateway_operator_upstream_attempts_total', attemptLabels(identifier, outcome));
      },
      settled: (hold: Hold, { cost, tokens, identifier, estimated }: Settlement) => {
        Object.assign(fields, { identifier, tokens, cost: formatMoney(cost), estimated });
        const labels = modelLabels(route, model);
        metrics.add('gateway_operator_tokens_total', tokenLabels(route, model, 'input'), tokens.input);
        metrics.add('gateway_operator_tokens_total', tokenLabels(route, model, 'output'), tokens.output);
        // A float, as all metrics are: for graphs. The ledger counts in integers.
        metrics.add('gateway_operator_cost_dollars_total', labels, Number(cost) / 1e9);
        if (estimated) metrics.add('gateway_operator_estimated_replies_total', labels);
        if (cost > hold.amount) metrics.add('gateway_operator_replies_above_hold_total', labels);
      },
      refused: (failure: Failure, { status, level }: FailureReply) => {
        Object.assign(fields, { status, code: failure.code, ...detailsOf(failure) });
        write(level, status, failure.code);
      },
      /** The reply went out; `end` says how. */
      answered: (status: number, end: ReplyEnd) => {
        Object.assign(fields, { status, end });
        write(end === 'broken' || end === 'timeout' ? 'warn' : 'info', status, end);
      },
    };

    function write(level: FailureReply['level'], status: number, code: string): void {
      const ms = clock.now() - began;
      fields.ms = ms;
      log[level]('request', fields);
      metrics.add('gateway_operator_requests_total', requestLabels(route, model, String(status), code));
      metrics.observe('gateway_operator_request_seconds', ms / 1000, modelLabels(route, model));
    }
  };
}

/** Details of a failure for the log, not for the client. */
function detailsOf(failure: Failure): Readonly<Record<string, unknown>> {
  if (failure.code === 'ledger_unavailable') return { why: failure.why };
  if (failure.code === 'rate_limit_exceeded') return { rate: failure.rate, ...scopeIn(failure) };
  if ('model' in failure) return { model: failure.model.slice(0, MAX_NAME) };
  return 'scope' in failure ? scopeIn(failure) : {};
}

function scopeIn({ scope }: { readonly scope?: Pick<ScopePolicy, 'kind' | 'name'> | undefined }) {
  return scope === undefined ? {} : { scope: `${scope.kind}/${scope.name}` };
}
