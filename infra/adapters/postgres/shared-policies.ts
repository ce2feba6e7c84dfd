// Sharing of equal parts: policies of many keys are alike, and a process may hold a hundred thousand of them.

/**
 * Members that are texts or objects and that two policies may have alike. The scope, its name and its object never are.
 */
const OWN: ReadonlySet<string> = new Set(['scopeId', 'name', 'object']);

/** Parts that are remembered, and their characters; beyond that, the rest is kept as it comes. */
const [MAX_SHARED, MAX_CHARACTERS] = [10_000, 4_000_000];

/** Answers what it is given, with equal members replaced by the first that was seen. Lives as long as one question. */
export function createSharing(): <T>(value: T) => T {
  const known = new Map<string, unknown>();
  let characters = 0;
  const share = (member: unknown): unknown => {
    if (typeof member !== 'string' && (typeof member !== 'object' || member === null)) return member;
    const key = JSON.stringify(member);
    if (known.has(key)) return known.get(key);
    if (known.size < MAX_SHARED && characters + key.length <= MAX_CHARACTERS) {
      known.set(key, member);
      characters += key.length;
    }
    return member;
  };
  return (value) => {
    if (typeof value !== 'object' || value === null) return value;
    const members = value as Record<string, unknown>;
    for (const name of Object.keys(members)) if (!OWN.has(name)) members[name] = share(members[name]);
    return value;
  };
}
