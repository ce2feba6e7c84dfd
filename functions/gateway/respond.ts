// What does the client get? Our own headers, a few of the provider's, and errors in one envelope.
import { type Failure, type FailureReply, toReply } from '#core/failure.ts';
import type { Target } from './route.ts';

type HeaderRecord = Readonly<Record<string, string>>;

/** A refusal, and what it became. */
export function toRefusal(
  failure: Failure,
  requestId: string,
): { readonly response: Response; readonly reply: FailureReply } {
  const reply = toReply(failure);
  const response = toJson(reply.status, { error: reply.error }, { ...reply.headers, 'x-request-id': requestId });
  return { response, reply };
}

export function toJson(status: number, body: unknown, headers: HeaderRecord): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });
}

/** Headers of an answer: everything of the provider's stays behind but its content type and its request id. */
export function answerHeaders(upstream: HeaderRecord, target: Target, requestId: string): Record<string, string> {
  const upstreamId = upstream['x-request-id'] ?? upstream['request-id'];
  const retryAfter = upstream['retry-after'];
  const { clamped, send } = target.limit;
  return {
    'content-type': upstream['content-type'] ?? 'application/json',
    'x-request-id': requestId,
    ...(upstreamId === undefined ? {} : { 'x-upstream-request-id': upstreamId }),
    ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    ...(clamped ? { 'x-gateway-clamped-to': String(send) } : {}),
  };
}
