// Sharing of equal parts: policies of many VirtualKeys have equal parts, and a process may have 100,000 policies.

/** Members that are never equal in two policies: the scope, its name and its object. */
const UNSHARED: ReadonlySet<string> = new Set(['scopeId', 'name', 'object']);

/** The maximum number of remembered parts, and of their characters. Parts beyond that are not shared. */
const [MAX_PARTS, MAX_CHARACTERS] = [10_000, 4_000_000];

/** Returns a function that replaces equal members of values by the first such member. Used for one query. */
export function createSharing(): <T>(value: T) => T {
  const firstByText = new Map<string, unknown>();
  let characters = 0;
  const share = (member: unknown): unknown => {
    if (typeof member !== 'string' && (typeof member !== 'object' || member === null)) return member;
    const key = JSON.stringify(member);
    if (firstByText.has(key)) return firstByText.get(key);
    if (firstByText.size < MAX_PARTS && characters + key.length <= MAX_CHARACTERS) {
      firstByText.set(key, member);
      characters += key.length;
    }
    return member;
  };
  return (value) => {
    if (typeof value !== 'object' || value === null) return value;
    const members = value as Record<string, unknown>;
    for (const name of Object.keys(members)) if (!UNSHARED.has(name)) members[name] = share(members[name]);
    return value;
  };
}
