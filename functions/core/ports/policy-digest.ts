// The digest of a policy: what the reconciler keeps of it in memory, to plan with and to notice changes.
import type { Hash } from './platform.ts';
import type { KeyPolicy, NamespacePolicy, PolicyChange, PolicyDigest, ScopePolicy } from './policy.ts';

/** Members that planning reads, so they are never hashed. The schemas of the custom resources limit their size. */
const WHOLE: ReadonlySet<string> = new Set(['budget', 'furtherBudgets', 'retained', 'secretName', 'perKey']);

/** The length of a hash. A text of this length is hashed too, so that no text looks like the hash of another. */
const LENGTH = 64;

/**
 * The digest of the policy as a registry stores it (`toStoredText`), so that a policy that was written is read as
 * equal. Other members that are longer than a hash are replaced by theirs.
 */
export function digestOf(policy: ScopePolicy | KeyPolicy | NamespacePolicy | PolicyChange, hash: Hash): PolicyDigest {
  const digest: Record<string, unknown> = {};
  for (const [name, given] of Object.entries(policy)) {
    if (given === undefined) continue;
    const json = JSON.stringify(given);
    const member = UNSTORED.test(json) ? JSON.parse(toStoredText(json)) : given;
    digest[name] = WHOLE.has(name) || isShort(member) ? member : hash(toStableJson(member));
  }
  return digest;
}

/** The escape of a NUL or of half a surrogate pair, possibly after a backslash that is text itself. */
const UNSTORED = /\\u(?:0000|d)/;

/**
 * The JSON of `JSON.stringify` in which characters that a text of PostgreSQL cannot contain (NUL, and half a surrogate
 * pair) are the six characters of their escape.
 */
export const toStoredText = (json: string): string =>
  json.replace(/\\(u0000|ud...|.)/g, (pair, escaped: string) => (escaped.length > 1 ? `\\${pair}` : pair));

function isShort(member: unknown): boolean {
  if (typeof member === 'string') return member.length < LENGTH;
  return typeof member !== 'object' || JSON.stringify(member).length <= LENGTH;
}

/** JSON with the members of objects sorted by name: PostgreSQL and API servers change their order. */
const toStableJson = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  );
