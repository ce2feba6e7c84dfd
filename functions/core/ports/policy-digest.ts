// The digest of a policy: as much as the reconciler keeps of each one, to plan with and to see whether it changes.
import type { Hash } from './platform.ts';
import type { KeyPolicy, PolicyChange, PolicyDigest, ScopePolicy } from './policy.ts';

/** Members that planning reads. The schemas of the custom resources bound them. */
const WHOLE: ReadonlySet<string> = new Set(['budget', 'furtherBudgets', 'retained']);

/** Of a hash. A text that is as long is replaced by its own, so that none can be taken for another's hash. */
const LENGTH = 64;

/**
 * The digest of the policy as a registry stores it (`toStoredText`), so that a policy that was written is read as equal.
 * Other members that are longer than a hash are replaced by theirs.
 */
export function digestOf(policy: ScopePolicy | KeyPolicy | PolicyChange, hash: Hash): PolicyDigest {
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

/** The members of objects by name: PostgreSQL and API servers give them in another order. */
const toStableJson = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  );
