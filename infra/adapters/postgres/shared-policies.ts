// Sharing of equal parts: policies of many keys are alike, and a process may hold a hundred thousand of them.

/**
 * Members that are texts or objects and that two policies may have alike. The scope, its name and its object never are.
 */
const OWN: ReadonlySet<string> = new Set(['scopeId', 'name', 'object']);

/** Parts that are remembered; beyond that, the rest is kept as it comes. */
const MAX_SHARED = 10_000;

/** Answers what it is given, with equal members replaced by the first that was seen. Lives as long as one question. */
export function createSharing(): <T>(value: T) => T {
  const known = new Map<string, unknown>();
  const share = (member: unknown): unknown => {
    if (typeof member !== 'string' && (typeof member !== 'object' || member === null)) return member;
    const key = JSON.stringify(member);
    if (!known.has(key) && known.size < MAX_SHARED) known.set(key, member);
    return known.get(key) ?? member;
  };
  return (value) => {
    if (typeof value !== 'object' || value === null) return value;
    const members = value as Record<string, unknown>;
    for (const name of Object.keys(members)) if (!OWN.has(name)) members[name] = share(members[name]);
    return value;
  };
}
