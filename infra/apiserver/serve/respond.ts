// The path of a request: user, route, options, handler.
import type { IncomingMessage } from 'node:http';
import { type ApiError, isApiError, methodNotAllowed, noSuchPath, type Outcome } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import type { OpenApi } from '../discovery/openapi.ts';
import { readBody } from '../request/body.ts';
import { type ApiRequest, type User, writeOptions } from '../request/request.ts';
import { parsePath, type ResourcePath, routeOf } from '../request/route.ts';
import { handle } from './handle.ts';
import { plainResponse, publicResponse } from './plain.ts';
import type { PlainResponse, WatchResponse } from './write-response.ts';

export type ServeContext = {
  readonly deps: Deps;
  readonly openApi: OpenApi;
  authenticate(headers: IncomingMessage['headers']): Outcome<User>;
  /** The end of a sentence about what this server does not do: what to do instead. */
  readonly instead: string;
};

/** The longest a request but a watch may take, in milliseconds. */
const maxDuration = 34_000;

/** Everything but the writing of the response. `warn` collects Warning headers. */
export async function respond(
  serving: ServeContext,
  message: IncomingMessage,
  context: Pick<ApiRequest, 'warn' | 'signal'>,
): Promise<Outcome<PlainResponse | WatchResponse>> {
  const { deps } = serving;
  const url = new URL(message.url ?? '/', 'https://api-server');
  const open = publicResponse(url.pathname);
  if (open !== undefined) return open;
  const user = serving.authenticate(message.headers);
  if (isApiError(user)) return user;
  const { method = '', headers } = message;
  const { accept = '', 'content-type': contentType = '' } = headers;
  const plain = method === 'GET' ? plainResponse({ ...deps, openApi: serving.openApi }, url.pathname) : undefined;
  if (plain !== undefined) return plain;
  const path = parsePath(url.pathname);
  if (path === undefined) return noSuchPath();
  const body = await readBody(message);
  if (isApiError(body)) return body;
  const route = routeOf(deps.registry, method, path, url.searchParams);
  if (typeof route === 'string') return unserved(route, path, serving);
  const options = writeOptions(url.searchParams, route.verb);
  if (isApiError(options)) return options;
  const deadline = deps.now() + maxDuration;
  const request = { ...route, ...options, ...context, query: url.searchParams, contentType, accept, body, user };
  return handle(deps, { ...request, deadline });
}

function unserved(
  what: 'resource' | 'subresource' | 'method',
  { plural, subresource }: ResourcePath,
  { instead }: ServeContext,
): ApiError {
  if (what === 'resource') return noSuchPath();
  if (what === 'subresource') return noSuchPath(`this API server has no ${plural}/${subresource}; ${instead}`);
  const message = 'the server does not allow this method on the requested resource';
  const advice = plural === 'pods' ? `: this API server runs no Pods; ${instead}` : '';
  return methodNotAllowed(undefined, `${message}${advice}`);
}
