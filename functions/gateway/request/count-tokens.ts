// Counts of a prompt's tokens before it is sent: asked of the provider, else estimated. Free: no reservation, no rate.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { countIn, parseJson } from '#core/json/json.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Grant } from '../caller/access.ts';
import { createBudgetLeft, type RequestFailure, type RequestLimits } from '../caller/budget-left.ts';
import type { GatewayDeps } from '../deps.ts';
import { answerHeaders, type RequestContext, refuse } from '../reply/respond.ts';
import { markOf } from '../targets/affinity.ts';
import { createEndpoints } from '../targets/endpoints.ts';
import { inOrder } from '../targets/targets.ts';
import { failureOf } from '../upstream/attempt-failure.ts';
import { openReply } from '../upstream/upstream-reply.ts';
import type { Api } from '../wire/api.ts';
import type { Codec, Endpoint, Recipient } from '../wire/codec.ts';
import { usualTokens } from '../wire/prompt/prompt.ts';
import { type AdmitShared, createAdmit } from './admit.ts';
import { type ClientContext, createRequestLogs } from './request-log.ts';

interface Count {
  /** As the provider sent them; undefined: no provider made the count. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly body: string | Uint8Array;
}

/** Marks a count that no provider made. */
const ESTIMATED = { 'x-gateway-estimated': 'true' };
/** Agents ask while a person waits, and an estimate is at hand. */
const MAX_WAIT: Millis = 10_000;

export function createCountTokens(deps: GatewayDeps, shared: AdmitShared, api: Api & Required<Pick<Api, 'counting'>>) {
  const openRequestLog = createRequestLogs(deps, `${api.name}${api.counting.path}`);
  // A count searches nothing, so it needs no price of searches, and stores nothing: `store` is unknown there.
  const toRequest: Api['toRequest'] = (bytes, client) => {
    const request = api.toRequest(bytes, client);
    return request.ok ? ok({ ...request.value, stream: false, webSearches: undefined, store: undefined }) : request;
  };
  const admit = createAdmit(deps, shared, { ...api, toRequest });
  const endpointOf = createEndpoints(deps.credentials);
  const budgetLeft = createBudgetLeft(deps);
  const { cooldowns } = shared;

  return async function countTokens(client: HttpExchange, context: RequestContext): Promise<void> {
    const share = shared.room.open();
    const log = openRequestLog(context);
    try {
      const counted = await count({ client, log, share });
      const known = { ...context, ...(await budgetLeft.learn(counted.ok ? counted.value : counted.failure)) };
      if (!counted.ok) return log.refused(counted.failure.failure, refuse(client, counted.failure.failure, known));
      log.answered(200, 'complete');
      const { headers, body: reply } = counted.value;
      const own = answerHeaders(headers ?? {}, known, undefined);
      client.begin(200, headers === undefined ? { ...own, ...ESTIMATED } : own);
      client.end(typeof reply === 'string' ? reply : [reply]);
    } finally {
      share.leave();
    }
  };

  async function count(asking: ClientContext): Promise<Result<Count & RequestLimits, RequestFailure>> {
    const grant = await admit(asking);
    if (!grant.ok) return grant;
    const { chargedScopes, request } = grant.value;
    const endpoint = chooseEndpoint(grant.value);
    const counted = endpoint === undefined ? undefined : await ask(grant.value, endpoint, asking);
    if (counted?.ok === false) return err({ failure: counted.failure, chargedScopes });
    if (counted !== undefined) return ok({ ...counted.value, chargedScopes });
    const estimate = api.counting.toReply(usualTokens(request.input));
    return ok({ headers: undefined, body: JSON.stringify(estimate), chargedScopes });
  }

  function chooseEndpoint({ caller, request, candidates, routing }: Grant): Endpoint | undefined {
    const { madeBy } = request.affinity ?? {};
    const counting = candidates.filter(
      ({ codec, provider, entry }) =>
        codec.countsTokens && provider.cloud === undefined && (madeBy === undefined || markOf(entry) === madeBy),
    );
    const reachable = counting.flatMap((candidate) => {
      const endpoint = endpointOf(candidate);
      return endpoint.ok && cooldowns.of(endpoint.value, caller.key.scopeId) === undefined ? [endpoint.value] : [];
    });
    return inOrder(reachable, routing.strategy, { random: deps.random, inFlight: cooldowns.inFlight })[0];
  }

  /** The provider's count, or its refusal of the request; undefined where it has neither. */
  async function ask(
    { request, routing }: Grant,
    endpoint: Endpoint,
    { log, share }: ClientContext,
  ): Promise<Result<Count, Failure> | undefined> {
    const to: Recipient = { endpoint, limit: { max: 0, clamped: false } };
    const call = endpoint.codec.toCall(request, to);
    request.sent.rest();
    if (!call.ok) return call;
    const controller = new AbortController();
    const cancel = deps.timer(MAX_WAIT, () => controller.abort());
    const { identifier } = endpoint.entry;
    try {
      const timeouts = { ...routing.timeouts, firstByte: MAX_WAIT };
      const url = withPath(call.value.url, api.counting.path);
      const response = await deps.upstream({ ...call.value, url, timeouts, signal: controller.signal });
      const origin = {
        endpoint: { ...endpoint, codec: countingCodec(endpoint.codec) },
        stream: false,
        clock: deps.clock,
        signal: controller.signal,
        share,
      };
      const opened = await openReply(response, origin);
      log.attempt(identifier, opened.ok ? undefined : opened.failure);
      if (opened.ok && opened.value.type === 'plain') {
        return ok({ headers: response.headers, body: opened.value.reply.body });
      }
      const refused = opened.ok || opened.failure.failure.code !== 'upstream_refused' ? undefined : opened.failure;
      return refused === undefined ? undefined : err(refused.failure);
    } catch (error) {
      log.attempt(identifier, failureOf(error, controller.signal));
      return undefined;
    } finally {
      cancel();
      controller.abort();
    }
  }
}

/** Replies of counts: any object with a number of input tokens. */
function countingCodec({ streams: _, ...codec }: Codec): Codec {
  return {
    ...codec,
    readReply: (bytes) => {
      const isCount = countIn(parseJson(fromUtf8(bytes)), 'input_tokens') !== undefined;
      return isCount ? { body: bytes, usage: undefined, size: () => ({ outputBytes: 0, media: 0 }) } : undefined;
    },
  };
}

/** The address with this path behind its own, before its query. */
function withPath(url: string, path: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url + path : url.slice(0, end) + path + url.slice(end);
}
