// What is called? An entry, where it listens, with which credentials, and how much it may say.
import type { Provider } from '#core/providers.ts';
import type { Candidate } from './terms.ts';

/** An entry that can be called. */
export interface Endpoint extends Candidate {
  readonly provider: Provider;
  /** What stands before the dialect's path, without a slash at its end. */
  readonly base: string;
  /** Values by credential name. */
  readonly credentials: Readonly<Record<string, string>>;
}

/** What it may produce within the hold. */
export interface OutputLimit {
  /** Tokens of one answer, at most: for dialects that must be told. */
  readonly most: number;
  /** Sent as the limit of each answer; absent where the request needs none of ours. */
  readonly send?: number;
  /** `send` is less than what was asked for. */
  readonly clamped: boolean;
  /** A stream that has surely produced more than this is cut; absent where nobody has a budget. */
  readonly cutAt?: bigint;
}

/** As a request is written for it. */
export interface Recipient extends Endpoint {
  readonly limit: OutputLimit;
}
