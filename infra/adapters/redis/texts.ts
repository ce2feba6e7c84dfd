// Answers of the script: texts and lists of texts, nothing else.

export function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new Error('the store answered with something that is no text');
  return value;
}

export function listOf(value: unknown): ReadonlyArray<unknown> {
  if (!Array.isArray(value)) throw new Error('the store answered with something that is no list');
  return value;
}
