// Formats of errors, as the clients of each API parse them.
import type { FailureReply } from '#core/failure/failure.ts';
import type { RemainingBudget } from '#core/ports/policy.ts';
import { spendHeaders } from '../messages/spend.ts';

export interface ErrorFormat {
  /** The body of a refusal. */
  toBody(error: FailureReply['error'], status: number): object;
  /** Headers of a refusal, in addition to those of all APIs. */
  headersOf?(status: number, error: FailureReply['error']): Readonly<Record<string, string>>;
  /**
   * Headers with the rest of a budget for clients of this API, in addition to those of all APIs. `isSpent`: the reply
   * is the refusal of that budget.
   */
  budgetHeaders?(budget: RemainingBudget, isSpent: boolean): Readonly<Record<string, string>>;
}

export const openaiErrors: ErrorFormat = { toBody: (error) => ({ error }) };

/**
 * The format of the Responses API. Codex ends its run at this type, and shows our message and the reset: "You've hit
 * your usage limit. …, or try again at …".
 */
export const responsesErrors: ErrorFormat = {
  toBody: (error) => ({ error: error.code === 'budget_exceeded' ? { ...error, type: 'usage_limit_reached' } : error }),
  headersOf: (_, { code, message }) =>
    code === 'budget_exceeded' && PRINTABLE.test(message)
      ? { 'x-codex-promo-message': message.replace(/\.$/, '') }
      : {},
};

/** Texts that a header can contain. */
const PRINTABLE = /^[\x20-\x7e]*$/;

/** The format of Anthropic, with our code beside the type (platform.claude.com/docs/en/api/errors). */
export const anthropicErrors: ErrorFormat = {
  toBody: ({ message, code, resets_at, doc_url }, status) => ({
    type: 'error',
    error: { type: code === 'budget_exceeded' ? 'billing_error' : toType(status), message, code, resets_at, doc_url },
  }),
  // Without this header, Claude Code repeats a request with a wrong key for minutes.
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
