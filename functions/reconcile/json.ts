// JSON values: whether two are equal, and where they differ.

/** The names of the members that differ. */
export function differingMembers(desired: object, stored: object): ReadonlyArray<string> {
  const names = [...new Set([...Object.keys(desired), ...Object.keys(stored)])];
  const member = (of: object, name: string): unknown => (of as Readonly<Record<string, unknown>>)[name];
  return names.filter((name) => !sameJson(member(desired, name), member(stored, name)));
}

/**
 * Whether two values are equal. PostgreSQL returns JSON with its members in another order. Allocates nothing, because a
 * large resync compares a million values.
 */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((one, index) => sameJson(one, b[index]));
  }
  return sameMembers(a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>);
}

function sameMembers(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  let more = 0;
  for (const name in a) {
    if (a[name] === undefined) continue;
    if (!sameJson(a[name], b[name])) return false;
    more += 1;
  }
  for (const name in b) if (b[name] !== undefined) more -= 1;
  return more === 0;
}
