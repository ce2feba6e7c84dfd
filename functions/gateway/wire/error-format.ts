// Errors as the clients of an API parse them.
import type { FailureReply } from '#core/failure.ts';

export interface ErrorFormat {
  /** The body of a refusal. */
  toBody(error: FailureReply['error'], status: number): object;
}

export const openaiErrors: ErrorFormat = { toBody: (error) => ({ error }) };
