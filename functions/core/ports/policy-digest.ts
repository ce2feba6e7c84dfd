// The digest of a policy: as much as the reconciler keeps of each one, to plan with and to see whether it changes.
import type { Hash } from './platform.ts';
import type { KeyPolicy, PolicyChange, PolicyDigest, ScopePolicy } from './policy.ts';

/** Members that planning reads. The schemas of the custom resources bound them. */
const WHOLE: ReadonlySet<string> = new Set(['budget', 'furtherBudgets', 'retained']);

/** Of a hash. A text that is as long is replaced by its own, so that none can be taken for another's hash. */
const LENGTH = 64;

/** Other members that are longer than a hash are replaced by theirs. */
export function digestOf(policy: ScopePolicy | KeyPolicy | PolicyChange, hash: Hash): PolicyDigest {
  const digest: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(policy)) {
    if (member !== undefined) digest[name] = WHOLE.has(name) || isShort(member) ? member : hash(toStableJson(member));
  }
  return digest;
}

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
