// The requests of a database that asks who we are. Each starts work of the client library, some of it in threads that
// all of the process shares.
import { AnswerRefused } from '../backends/reply-memory.ts';

/**
 * Rounds of hashing for a password (SCRAM): PostgreSQL's `scram_iterations` is 4096. They take a thread some 10 ms,
 * which nobody can end.
 */
export const MAX_ROUNDS = 20_000;

/** Codes of requests (PostgreSQL, Message Formats: Authentication…). */
const [OK, CLEARTEXT, MD5, SASL, SASL_CONTINUE, SASL_FINAL] = [0, 3, 5, 10, 11, 12];

/** The requests that may follow each. */
const NEXT: Readonly<Record<number, ReadonlyArray<number>>> = {
  [CLEARTEXT]: [OK],
  [MD5]: [OK],
  [SASL]: [SASL_CONTINUE],
  [SASL_CONTINUE]: [SASL_FINAL],
  [SASL_FINAL]: [OK],
};

/** Throws at a request that does not come in its order: each comes at most once for a connection. */
export function createAuthentication() {
  let next: ReadonlyArray<number> = [OK, CLEARTEXT, MD5, SASL];
  return {
    ask(code: number): void {
      if (!next.includes(code)) throw new AnswerRefused(UNSUPPORTED);
      next = NEXT[code] ?? [];
    },
  };
}

const UNSUPPORTED =
  'asks who we are in a way that is not supported: check that the Secret names the right server, and that it asks this user for a password';
