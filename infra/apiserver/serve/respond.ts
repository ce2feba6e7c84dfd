// How does a request become an answer?
import type { IncomingMessage } from 'node:http';
import { type ApiError, badRequest, isApiError, methodNotAllowed, noSuchPath, type Outcome } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import { answerReview, findReview } from '../discovery/access-reviews.ts';
import type { OpenApi } from '../discovery/openapi.ts';
import { decodeBody } from '../request/body.ts';
import { readBody } from '../request/read-body.ts';
import { type ApiRequest, deadlineOf, type User, writeOptions } from '../request/request.ts';
import { type Place, parsePath, routeOf } from '../request/route.ts';
import type { JsonObject } from '../schema/json.ts';
import { handle, type ResourceResponse } from './handle.ts';
import { type PlainResponse, plainResponse, publicResponse } from './plain.ts';

export type Serving = {
  readonly deps: Deps;
  readonly openApi: OpenApi;
  authenticate(headers: IncomingMessage['headers']): Outcome<User>;
};

export type ApiResponse = ApiError | ResourceResponse | PlainResponse;

/** Everything but the writing of the response. `warn` collects Warning headers. */
export async function answer(
  serving: Serving,
  message: IncomingMessage,
  context: { warn: ApiRequest['warn']; signal: AbortSignal },
): Promise<ApiResponse> {
  const { deps, openApi } = serving;
  const url = new URL(message.url ?? '/', 'https://cluster');
  const open = publicResponse(url.pathname);
  if (open !== undefined) return open;
  const user = serving.authenticate(message.headers);
  if (isApiError(user)) return user;
  const accept = message.headers.accept ?? '';
  const plain = message.method === 'GET' ? plainResponse({ ...deps, openApi }, url.pathname, accept) : undefined;
  if (plain !== undefined) return plain;
  const place = parsePath(url.pathname);
  if (place === undefined) return noSuchPath();
  const body = await readBody(message);
  if (isApiError(body)) return body;
  const contentType = message.headers['content-type'] ?? '';
  const review = message.method === 'POST' ? reviewed(place, { body, contentType, user, now: deps.now() }) : undefined;
  if (review !== undefined) return review;
  const route = routeOf(deps.registry, message.method ?? '', place, url.searchParams);
  if (route === undefined) return noSuchPath();
  if (route === 'method') return wrongMethod(place);
  const options = writeOptions(url.searchParams, route.verb);
  if (isApiError(options)) return options;
  return handle(deps, {
    ...route,
    ...options,
    ...context,
    deadline: deadlineOf(url.searchParams, deps.now()),
    query: url.searchParams,
    contentType,
    accept,
    body,
    user,
  });
}

type Reviewing = { readonly body: Buffer; readonly contentType: string; readonly user: User; readonly now: number };

function reviewed(
  { group, version, plural }: Place,
  { body, contentType, user, now }: Reviewing,
): PlainResponse | ApiError | undefined {
  const kind = findReview(group, version, plural);
  if (kind === undefined) return undefined;
  const review: JsonObject | ApiError = decodeBody(body, contentType);
  if (isApiError(review)) return review;
  if (review.kind !== undefined && review.kind !== kind.kind) return badRequest(`the kind must be ${kind.kind}`);
  return { code: 201, body: answerReview(kind, review, { user, now }) };
}

function wrongMethod({ plural, subresource, name }: Place): ApiError {
  const words = 'the server does not allow this method on the requested resource';
  if (plural === 'pods')
    return methodNotAllowed(
      undefined,
      `${words}: the embedded cluster runs no Pods; for that use a real cluster (--cluster envtest, or a kubeconfig)`,
    );
  if (name !== undefined && subresource !== undefined)
    return noSuchPath(
      `the embedded cluster has no ${plural}/${subresource}; for that use a real cluster (--cluster envtest)`,
    );
  return methodNotAllowed(undefined, words);
}
