// How does a request become an answer?
import type { IncomingMessage } from 'node:http';
import type { Deps } from '../deps.ts';
import type { OpenApi } from '../discovery/openapi.ts';
import { answerReview, findReview } from '../discovery/reviews.ts';
import { badRequest, isRefusal, methodNotAllowed, noSuchPath, type Outcome, type Refusal } from '../refusal.ts';
import type { JsonObject } from '../schema/json.ts';
import { decodeBody } from './body.ts';
import { handle, type Reply } from './handle.ts';
import { type Plain, plainAnswer, publicAnswer } from './plain.ts';
import { readBody } from './read-body.ts';
import { type ApiRequest, deadlineOf, type User, writeOptions } from './request.ts';
import { type Place, placeOf, routeOf } from './route.ts';

export type Serving = {
  readonly deps: Deps;
  readonly openApi: OpenApi;
  authenticate(headers: IncomingMessage['headers']): Outcome<User>;
};

export type Answered = Refusal | Reply | Plain;

/** Everything but the writing of the response. `warn` collects Warning headers. */
export async function answer(
  serving: Serving,
  message: IncomingMessage,
  context: { warn: ApiRequest['warn']; signal: AbortSignal },
): Promise<Answered> {
  const { deps, openApi } = serving;
  const url = new URL(message.url ?? '/', 'https://cluster');
  const open = publicAnswer(url.pathname);
  if (open !== undefined) return open;
  const user = serving.authenticate(message.headers);
  if (isRefusal(user)) return user;
  const accept = message.headers.accept ?? '';
  const plain = message.method === 'GET' ? plainAnswer({ ...deps, openApi }, url.pathname, accept) : undefined;
  if (plain !== undefined) return plain;
  const place = placeOf(url.pathname);
  if (place === undefined) return noSuchPath();
  const body = await readBody(message);
  if (isRefusal(body)) return body;
  const contentType = message.headers['content-type'] ?? '';
  const review = message.method === 'POST' ? reviewed(place, { body, contentType, user, now: deps.now() }) : undefined;
  if (review !== undefined) return review;
  const route = routeOf(deps.registry, message.method ?? '', place, url.searchParams);
  if (route === undefined) return noSuchPath();
  if (route === 'method') return wrongMethod(place);
  const options = writeOptions(url.searchParams, route.verb);
  if (isRefusal(options)) return options;
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
): Plain | Refusal | undefined {
  const kind = findReview(group, version, plural);
  if (kind === undefined) return undefined;
  const review: JsonObject | Refusal = decodeBody(body, contentType);
  if (isRefusal(review)) return review;
  if (review.kind !== undefined && review.kind !== kind.kind) return badRequest(`the kind must be ${kind.kind}`);
  return { code: 201, body: answerReview(kind, review, { user, now }) };
}

function wrongMethod({ plural, subresource, name }: Place): Refusal {
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
