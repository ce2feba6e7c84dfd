// Refusals of providers, read by dialect: what was wrong, in the provider's words and by its code.
import { member, textOf } from '#core/json.ts';

export interface WireError {
  readonly message: string | undefined;
  readonly param: string | undefined;
  /** The provider's own word for it, for the log. */
  readonly code: string | undefined;
  /** The status it would have had, where it came inside a stream. */
  readonly status: number | undefined;
}

/** OpenAI's envelope, and the flat ones of others (`{"message"}`, `{"detail"}`). */
export function openaiError(body: unknown): WireError {
  const error = member(body, 'error') ?? body;
  const message = typeof error === 'string' ? error : (member(error, 'message') ?? member(error, 'detail'));
  const code = member(error, 'code') ?? member(error, 'type');
  const status = Number(member(error, 'status') ?? member(error, 'code'));
  return {
    message: typeof message === 'string' ? message : message === undefined ? undefined : JSON.stringify(message),
    param: textOf(member(error, 'param')),
    code: typeof code === 'number' ? String(code) : textOf(code),
    status: Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined,
  };
}

/** The status each kind of error has outside of a stream (platform.claude.com/docs/en/api/errors). */
const ANTHROPIC_STATUSES: ReadonlyMap<string, number> = new Map([
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

/** `{"type": "error", "error": {"type", "message"}}`. Total: a proxy's error page is an error without words. */
export function anthropicError(body: unknown): WireError {
  const error = member(body, 'error');
  const code = textOf(member(error, 'type'));
  return {
    message: textOf(member(error, 'message')) ?? textOf(error),
    param: undefined,
    code,
    status: code === undefined ? undefined : ANTHROPIC_STATUSES.get(code),
  };
}
