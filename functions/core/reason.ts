// Why did something fail, in words?

/** An error without what caused it: messages of drivers may hold addresses, never passwords. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
