// What does Anthropic say when it refuses? `{"type": "error", "error": {"type", "message"}}`, also in the middle of a stream.
import type { WireError } from './dialect.ts';
import { member, textOf } from './json.ts';

/** The status each kind of error has outside of a stream (platform.claude.com/docs/en/api/errors). */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

/** Total: a page of somebody in between is an error without words. */
export function toWireError(body: unknown): WireError {
  const error = member(body, 'error');
  const code = textOf(member(error, 'type'));
  return {
    message: textOf(member(error, 'message')) ?? textOf(error),
    param: undefined,
    code,
    status: code === undefined ? undefined : STATUSES.get(code),
  };
}
