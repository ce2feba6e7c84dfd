// JSON as our code reads it.

export type Json = Readonly<Record<string, unknown>>;

export const isMap = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
