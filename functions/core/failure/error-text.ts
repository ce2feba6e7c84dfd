// The text of an error, for people.

/**
 * The message of an error without its causes. Messages of drivers may contain addresses, never passwords. An error of
 * several attempts (for a name with two addresses) gives the messages of all attempts.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  if (isSuppressed(error)) return `${reasonAndCausesOf(error.suppressed)}; ${reasonAndCausesOf(error.error)}`;
  return error instanceof Error ? error.message : String(error);
}

/**
 * Whether it is a `SuppressedError`: several parts failed to close, one after the other. Not every platform has the
 * class.
 */
const isSuppressed = (error: unknown): error is { readonly error: unknown; readonly suppressed: unknown } =>
  error instanceof Error && error.name === 'SuppressedError' && 'error' in error && 'suppressed' in error;

/** The message of an error with those of its causes: `opening the database: connect ECONNREFUSED 127.0.0.1:5432`. */
export function reasonAndCausesOf(error: unknown): string {
  if (!(error instanceof Error) || error.cause === undefined) return reasonOf(error);
  return `${reasonOf(error)}: ${reasonAndCausesOf(error.cause)}`;
}
