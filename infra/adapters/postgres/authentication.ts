// Authentication requests of a database. Each makes the client library work, in part in threads that the whole process
// shares.
import { AnswerRefused } from '../backends/reply-memory.ts';

/**
 * The maximum rounds of hashing for a password (SCRAM); PostgreSQL's default `scram_iterations` is 4096. These rounds
 * take a thread about 10 ms and cannot be stopped.
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

/** Checks the order of requests: `check` throws if a request comes out of order, or twice for a connection. */
export function createAuthentication() {
  let next: ReadonlyArray<number> = [OK, CLEARTEXT, MD5, SASL];
  return {
    check(code: number): void {
      if (!next.includes(code)) throw new AnswerRefused(UNSUPPORTED);
      next = NEXT[code] ?? [];
    },
  };
}

const UNSUPPORTED =
  'requests an authentication that is not supported: check that the Secret names the right server, and that the server uses password authentication for this user';
