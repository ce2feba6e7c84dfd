// Values in replies of the script: texts and lists.

export function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new Error('unexpected reply of the store: must be a text');
  return value;
}

export function listOf(value: unknown): ReadonlyArray<unknown> {
  if (!Array.isArray(value)) throw new Error('unexpected reply of the store: must be a list');
  return value;
}
