// What does the client get? Our own headers, a few of the provider's, and errors in one envelope.
import { type Failure, type FailureReply, toReply } from '#core/failure.ts';
import type { Ids } from '#core/ports/clock.ts';
import type { RateView } from '#core/ports/ledger.ts';
import { rateHeaders } from './rate-headers.ts';
import type { RequestNames } from './record.ts';
import type { Target } from './route.ts';

type HeaderRecord = Readonly<Record<string, string>>;

/** A refusal, and what it became. */
export function toRefusal(
  failure: Failure,
  names: RequestNames,
  rates?: RateView,
): { readonly response: Response; readonly reply: FailureReply } {
  const reply = toReply(failure);
  const response = toJson(
    reply.status,
    { error: reply.error },
    {
      ...{ ...reply.headers, ...nameHeaders(names) },
      ...rateHeaders(rates),
    },
  );
  return { response, reply };
}

/** What a client may call its request: printable, and short enough for a header. */
const CLIENT_NAME = /^[\x21-\x7e]{1,128}$/;

export function namesOf(request: Request, ids: Ids): RequestNames {
  const client = request.headers.get('x-client-request-id') ?? request.headers.get('x-request-id');
  return { requestId: ids.next(), clientRequestId: client !== null && CLIENT_NAME.test(client) ? client : undefined };
}

export function nameHeaders({ requestId, clientRequestId }: RequestNames): HeaderRecord {
  return {
    'x-request-id': requestId,
    ...(clientRequestId === undefined ? {} : { 'x-client-request-id': clientRequestId }),
  };
}

export function toJson(status: number, body: unknown, headers: HeaderRecord): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });
}

/** Headers of an answer: everything of the provider's stays behind but its content type and its request id. */
export function answerHeaders(
  upstream: HeaderRecord,
  target: Target,
  names: RequestNames,
  rates: RateView | undefined,
): Record<string, string> {
  const upstreamId = upstream['x-request-id'] ?? upstream['request-id'];
  const retryAfter = upstream['retry-after'];
  const { clamped, send } = target.limit;
  return {
    'content-type': upstream['content-type'] ?? 'application/json',
    ...nameHeaders(names),
    ...(upstreamId === undefined ? {} : { 'x-upstream-request-id': upstreamId }),
    ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    ...rateHeaders(rates),
    ...(clamped ? { 'x-gateway-clamped-to': String(send) } : {}),
  };
}
