// How do a hundred thousand objects fit into memory? What many of them say alike is kept once.

/** An equal value; of equal parts the first that was seen. What it is given may be changed, what it answers never. */
export type Sharing = <T>(value: T) => T;

/** Texts that no two objects have alike: looking for their like would only cost. */
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
]);

/** Members of an object are shared, the object itself is not. Lives as long as one run. */
export function createSharing(): Sharing {
  const texts = new Map<string, string>();
  const parts = new Map<string, object>();
  const shareMember = (name: string, value: unknown): unknown => {
    if (typeof value === 'string') return OWN.has(name) ? value : remember(texts, value, value);
    if (typeof value !== 'object' || value === null) return value;
    return remember(parts, JSON.stringify(value), value);
  };
  return <T>(value: T): T => {
    if (typeof value !== 'object' || value === null) return value;
    const members = value as Record<string, unknown>;
    for (const name of Object.keys(members)) members[name] = shareMember(name, members[name]);
    return value;
  };
}

function remember<T>(known: Map<string, T>, key: string, value: T): T {
  const first = known.get(key);
  if (first !== undefined) return first;
  known.set(key, value);
  return value;
}
