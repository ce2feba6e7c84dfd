// The reason of a failure, in words.

/**
 * The message of an error without its causes: messages of drivers may hold addresses, never passwords. An error of
 * several attempts (a name with two addresses) has no message of its own but those of each attempt.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  if (isSuppressed(error)) return `${reasonAndCausesOf(error.suppressed)}; ${reasonAndCausesOf(error.error)}`;
  return error instanceof Error ? error.message : String(error);
}

/**
 * Errors of several parts that were closed one after the other: the last one, and those before it. Not each platform
 * has the class.
 */
const isSuppressed = (error: unknown): error is { readonly error: unknown; readonly suppressed: unknown } =>
  error instanceof Error && error.name === 'SuppressedError' && 'error' in error && 'suppressed' in error;

/** The same with what caused it, in one line: `opening the database: connect ECONNREFUSED 127.0.0.1:5432`. */
export function reasonAndCausesOf(error: unknown): string {
  if (!(error instanceof Error) || error.cause === undefined) return reasonOf(error);
  return `${reasonOf(error)}: ${reasonAndCausesOf(error.cause)}`;
}
