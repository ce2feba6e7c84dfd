// Errors as the clients of an API parse them.
import type { FailureReply } from '#core/failure/failure.ts';
import type { RemainingBudget } from '#core/ports/policy.ts';
import { spendHeaders } from '../messages/spend.ts';

export interface ErrorFormat {
  /** The body of a refusal. */
  toBody(error: FailureReply['error'], status: number): object;
  /** Headers of a refusal with this status, beside those of all APIs. */
  headersOf?(status: number, error: FailureReply['error']): Readonly<Record<string, string>>;
  /**
   * Headers that tell clients of this API what is left of a budget, beside those of all APIs. `isSpent`: in its
   * refusal.
   */
  budgetHeaders?(budget: RemainingBudget, isSpent: boolean): Readonly<Record<string, string>>;
}

export const openaiErrors: ErrorFormat = { toBody: (error) => ({ error }) };

/**
 * OpenAI's envelope; Codex ends its run at this type, and tells the reset, with our words between: "You've hit your
 * usage limit. …, or try again at …".
 */
export const responsesErrors: ErrorFormat = {
  toBody: (error) => ({ error: error.code === 'budget_exceeded' ? { ...error, type: 'usage_limit_reached' } : error }),
  headersOf: (_, { code, message }) =>
    code === 'budget_exceeded' && PRINTABLE.test(message)
      ? { 'x-codex-promo-message': message.replace(/\.$/, '') }
      : {},
};

/** Texts that a header can carry. */
const PRINTABLE = /^[\x20-\x7e]*$/;

/** Anthropic's envelope, with our code beside its type (platform.claude.com/docs/en/api/errors). */
export const anthropicErrors: ErrorFormat = {
  toBody: ({ message, code, resets_at }, status) => ({
    type: 'error',
    error: { type: code === 'budget_exceeded' ? 'billing_error' : toType(status), message, code, resets_at },
  }),
  // Claude Code repeats a request with a wrong key for minutes.
  headersOf: (status) => (status === 401 ? { 'x-should-retry': 'false' } : {}),
  budgetHeaders: spendHeaders,
};

function toType(status: number): string {
  return TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

const TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
]);
