// Why did a server not answer, in its own words?

export function toReason(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(toReason).join('; ');
  return error instanceof Error ? error.message : String(error);
}
