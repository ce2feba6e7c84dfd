// Readers of unvalidated JSON: a member that is absent, or of another type, is undefined.

export function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/**
 * Whether the JSON has more than `max` members. Parsing 45,000 members takes 0.1 s, this takes 1 ms. Texts that are
 * JSON themselves count too.
 */
export function hasMoreMembers(json: string, max: number): boolean {
  let count = 0;
  for (let at = json.indexOf('":'); at !== -1; at = json.indexOf('":', at + 2)) {
    count += 1;
    if (count > max) return true;
  }
  return false;
}

/** The value as JSON; undefined if it has none, or if it is nested too deeply for the stack. */
export function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

export function member(of: unknown, name: string): unknown {
  return isObject(of) ? of[name] : undefined;
}

/** Whether the value is an object or a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** The member of a record by a name from a user: members that all objects inherit (`constructor`) do not count. */
export function ownMember<T>(of: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(of, name) ? of[name] : undefined;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function listOf(value: unknown): ReadonlyArray<unknown> {
  return Array.isArray(value) ? value : [];
}

/** The member, if it is a whole number from 0. */
export function countIn(of: unknown, name: string): number | undefined {
  const value = member(of, name);
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
