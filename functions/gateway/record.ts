// What is said of a request when it has ended? One line and a few numbers; no prompt, no key, no provider's message.
import type { Failure, FailureReply } from '#core/failure.ts';
import { formatMoney } from '#core/money.ts';
import type { Hold, Settlement } from '#core/ports/ledger.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import type { AttemptFailure } from './attempt-failure.ts';
import type { Caller } from './authenticate.ts';
import type { GatewayDeps } from './deps.ts';
import type { RequestNames } from './respond.ts';
import type { Endpoint } from './wire/dialect.ts';
import type { ReplyEnd } from './wire/stream-end.ts';

/** What becomes known of one request on its way; written once, at its end. */
export interface Line {
  readonly names: RequestNames;
  caller(caller: Caller): void;
  /** The model, once it is known to be one of ours: it becomes a label, and labels must be few. */
  model(name: string, stream: boolean): void;
  /** An entry that could not even be called, and why. */
  skipped(identifier: string, why: string): void;
  attempt(target: Endpoint, failed: AttemptFailure | undefined): void;
  settled(hold: Hold, settlement: Settlement): void;
  /** The reply was refused. */
  refused(failure: Failure, reply: FailureReply): void;
  /** The reply went out; `end` says how. */
  answered(status: number, end: ReplyEnd): void;
}

/** A refused model may be any text. */
const LONGEST_NAME = 256;

type LineDeps = Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>;

type Labels = Readonly<Record<string, string>>;

/** The same object for the same words: metrics know it again, and need not read it. The words are few. */
function keep(toLabels: (...words: string[]) => Labels): (...words: string[]) => Labels {
  const known = new Map<string, Labels>();
  return (...words) => {
    const key = words.join('\n');
    const labels = known.get(key) ?? toLabels(...words);
    known.set(key, labels);
    return labels;
  };
}

interface ModelLabels {
  readonly all: Labels;
  readonly input: Labels;
  readonly output: Labels;
}

/** The same, found without putting words together: most metrics of a request are about its model. */
function createLabels(): (route: string, model: string) => ModelLabels {
  const known = new Map<string, Map<string, ModelLabels>>();
  return (route, model) => {
    const found = known.get(route)?.get(model);
    if (found !== undefined) return found;
    const all = { route, model };
    const made = { all, input: { ...all, kind: 'input' }, output: { ...all, kind: 'output' } };
    known.set(route, (known.get(route) ?? new Map<string, ModelLabels>()).set(model, made));
    return made;
  };
}

export type OpenLine = (names: RequestNames, route: string) => Line;

export function createOpenLine({ clock, log, metrics }: LineDeps): OpenLine {
  const labelsOf = createLabels();
  const requestLabels = keep((route = '', model = '', status = '', code = '') => ({ route, model, status, code }));
  const attemptLabels = keep((identifier = '', outcome = '') => ({ identifier, outcome }));

  return function openLine(names, route) {
    const began = clock.now();
    const fields: Record<string, unknown> = { requestId: names.requestId, route };
    if (names.clientRequestId !== undefined) fields.clientRequestId = names.clientRequestId;
    let model = '';
    let attempts = 0;
    const skipped: string[] = [];

    return {
      names,
      caller: ({ key, scopes }) => {
        fields.alias = key.name;
        fields.key = `${key.object.namespace}/${key.object.name}`;
        addWords(fields, { key, scopes });
      },
      model: (name, stream) => {
        fields.model = name;
        fields.stream = stream;
        model = name;
      },
      skipped: (identifier, why) => {
        skipped.push(`${identifier}: ${why}`);
        fields.skipped = skipped;
        metrics.add('gateway_operator_upstream_attempts_total', attemptLabels(identifier, 'skipped'));
      },
      attempt: (target, failed) => {
        attempts += 1;
        const { identifier } = target.entry;
        fields.identifier = identifier;
        fields.attempts = attempts;
        if (failed?.status !== undefined) fields.upstreamStatus = failed.status;
        if (failed?.upstreamCode !== undefined) fields.upstreamCode = failed.upstreamCode;
        const outcome = failed?.failure.code ?? 'answered';
        metrics.add('gateway_operator_upstream_attempts_total', attemptLabels(identifier, outcome));
      },
      settled: (hold, { cost, tokens, identifier, estimated }) => {
        const labels = labelsOf(route, model);
        fields.identifier = identifier;
        fields.tokens = tokens;
        fields.cost = formatMoney(cost);
        fields.estimated = estimated;
        metrics.add('gateway_operator_tokens_total', labels.input, tokens.input);
        metrics.add('gateway_operator_tokens_total', labels.output, tokens.output);
        // A float, as all metrics are: for graphs. The ledger counts in integers.
        metrics.add('gateway_operator_cost_dollars_total', labels.all, Number(cost) / 1e9);
        if (estimated) metrics.add('gateway_operator_estimated_replies_total', labels.all);
        if (cost > hold.amount) metrics.add('gateway_operator_replies_above_hold_total', labels.all);
      },
      refused: (failure, { status, level }) => {
        Object.assign(fields, { status, code: failure.code, ...aside(failure) });
        write(level, status, failure.code);
      },
      answered: (status, end) => {
        fields.status = status;
        fields.end = end;
        write(end === 'broken' || end === 'timeout' ? 'warn' : 'info', status, end);
      },
    };

    function write(level: FailureReply['level'], status: number, code: string): void {
      const ms = clock.now() - began;
      fields.ms = ms;
      log[level]('request', fields);
      metrics.add('gateway_operator_requests_total', requestLabels(route, model, String(status), code));
      metrics.observe('gateway_operator_request_seconds', ms / 1000, labelsOf(route, model).all);
    }
  };
}

/** What people wrote on the key and its user, for whoever counts lines by it. */
function addWords(fields: Record<string, unknown>, { key, scopes }: KeyRecord): void {
  const user = scopes.find(({ kind }) => kind === 'user');
  if (user !== undefined) fields.user = user.alias ?? user.name;
  if (key.tags !== undefined) fields.tags = key.tags;
  if (key.metadata !== undefined) fields.metadata = key.metadata;
}

/** What the log may know and the client may not. */
function aside(failure: Failure): Readonly<Record<string, unknown>> {
  if (failure.code === 'ledger_unavailable') return { why: failure.why };
  if (failure.code === 'rate_limit_exceeded') {
    const { scope, rate } = failure;
    return { rate, ...(scope === undefined ? {} : { scope: `${scope.kind}/${scope.name}` }) };
  }
  if ('model' in failure) return { model: failure.model.slice(0, LONGEST_NAME) };
  if (failure.code === 'budget_exceeded' || failure.code === 'budget_held') {
    return { scope: `${failure.kind}/${failure.name}` };
  }
  return {};
}
