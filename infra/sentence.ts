// What does a person read of an error? Its message and those of its causes, in one line.

export function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${sentence(error.cause)}`;
}
