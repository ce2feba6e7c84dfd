// What does a trace of a request show? The request to its last byte, the hold, each call of a provider, the settlement; no prompt, no key, no reply.
import { formatMoney } from '#core/money.ts';
import type { Attributes, OpenSpan } from '#core/ports/tracer.ts';
import type { GatewayDeps } from './deps.ts';
import type { OpenLine } from './record.ts';

/**
 * The same lines; each is also followed as a span. A client's `traceparent` goes on here, and ends here: providers are told nothing
 * of it. The names `gen_ai.…` are those of OpenTelemetry's conventions, where none of them is stable yet.
 */
export function traceLines({ tracer, clock }: Pick<GatewayDeps, 'tracer' | 'clock'>, openLine: OpenLine): OpenLine {
  if (tracer === undefined) return openLine;
  return function openTracedLine(names, route, request) {
    const line = openLine(names, route);
    const span = tracer.begin(
      `POST ${PATH}`,
      { 'http.request.method': 'POST', 'http.route': PATH, 'gateway_operator.request_id': names.requestId },
      { parent: request?.headers.get('traceparent') ?? undefined },
    );
    let step: OpenSpan | undefined;
    let calls = 0;
    let calledAt = 0;
    let model: Attributes = {};
    const next = (to?: OpenSpan) => {
      step?.end();
      step = to;
    };
    const end = (attributes: Attributes, failed?: string) => {
      if (failed !== undefined) step?.fail(failed);
      next();
      span.add(attributes);
      if (failed !== undefined) span.fail(failed);
      span.end();
    };
    return {
      ...line,
      caller: (caller) => {
        const { namespace, name } = caller.key.object;
        span.add({ 'k8s.namespace.name': namespace, 'gateway_operator.key': name });
        line.caller(caller);
      },
      model: (name, stream) => {
        model = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': name, 'gen_ai.request.stream': stream };
        span.add(model);
        line.model(name, stream);
      },
      step: (name, target) => {
        if (name !== 'call' || target === undefined) return next(span.begin(name, {}));
        const { identifier, provider, model: called } = target.entry;
        const at = { 'gen_ai.provider.name': provider, 'gateway_operator.entry': identifier };
        const resent = calls === 0 ? {} : { 'http.request.resend_count': calls };
        calls += 1;
        calledAt = clock.now();
        const attributes = { ...model, ...at, ...resent, 'gen_ai.request.model': called };
        return next(span.begin(`chat ${called}`, attributes, { kind: 'client' }));
      },
      // A call that is answered goes on until its reply is settled.
      attempt: (target, failed) => {
        if (failed === undefined) {
          step?.add({ 'gen_ai.response.time_to_first_chunk': (clock.now() - calledAt) / 1000 });
        } else {
          const { failure, status } = failed;
          step?.add({
            'error.type': failure.code,
            ...(status === undefined ? {} : { 'http.response.status_code': status }),
          });
          step?.fail(failure.code);
          next();
        }
        line.attempt(target, failed);
      },
      settled: (hold, settlement) => {
        const { cost, tokens, estimated } = settlement;
        span.add({
          'gen_ai.usage.input_tokens': tokens.input,
          'gen_ai.usage.output_tokens': tokens.output,
          'gateway_operator.cost_dollars': formatMoney(cost),
          'gateway_operator.estimated': estimated,
        });
        line.settled(hold, settlement);
      },
      refused: (failure, reply) => {
        const { status } = reply;
        end(
          { 'http.response.status_code': status, 'error.type': failure.code },
          status >= 500 ? failure.code : undefined,
        );
        line.refused(failure, reply);
      },
      answered: (status, how) => {
        const broke = how === 'broken' || how === 'timeout';
        end({ 'http.response.status_code': status, 'gateway_operator.end': how }, broke ? how : undefined);
        line.answered(status, how);
      },
    };
  };
}

/** The one route of requests that are charged; what stands before it (an instance, a version) is the platform's. */
const PATH = '/chat/completions';
