// Why did a server not answer, in its own words?

/** What core's own `reasonOf` says, which an adapter may not import: a name with several addresses fails once for each. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
