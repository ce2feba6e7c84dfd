// Sharing of equal parts, so that a hundred thousand objects fit into memory.

/** An equal value; of equal parts the first that was seen. What it is given may be changed, what it answers must not be. */
export type Sharing = <T>(value: T) => T;

/** What no two objects have alike: looking for its like would only cost. */
const OWN: ReadonlySet<string> = new Set([
  'name',
  'uid',
  'resourceVersion',
  'keyAlias',
  'keyValue',
  'keyID',
  'keySecretRef',
  'userEmail',
  'teamAlias',
  'scopeId',
  'object',
]);

/** More that differ than this, and the rest is kept as it comes. */
const MAX_SHARED = 10_000;

/** Shares the members of an object, not the object itself. Lives as long as one run, or one question. */
export function createSharing(): Sharing {
  const texts = new Map<string, string>();
  const parts = new Map<string, object>();
  const shared = (name: string, value: unknown): unknown => {
    if (OWN.has(name)) return value;
    if (typeof value === 'string') return remember(texts, value, value);
    return typeof value === 'object' && value !== null ? remember(parts, JSON.stringify(value), value) : value;
  };
  return (value) => {
    if (typeof value !== 'object' || value === null) return value;
    const members = value as Record<string, unknown>;
    for (const name of Object.keys(members)) members[name] = shared(name, members[name]);
    return value;
  };
}

function remember<T>(known: Map<string, T>, key: string, value: T): T {
  const first = known.get(key);
  if (first !== undefined) return first;
  if (known.size < MAX_SHARED) known.set(key, value);
  return value;
}
