// What is wrong with an object, where, how bad is it, and how is that said? The same in an answer of admission and in a condition.
import type { Violation } from '#crds/violation.ts';

/**
 * | effect | on apply | on dry run | in a condition |
 * |---|---|---|---|
 * | `refuse` | refused | refused | said |
 * | `refuse-unless-dry-run` | refused | a warning: the same file may create what is missing | said |
 * | `warn` | a warning | a warning | |
 */
export type Effect = 'refuse' | 'refuse-unless-dry-run' | 'warn';

/** A mistake, or what is only unwise, and what it leads to. */
export interface Finding extends Violation {
  readonly effect: Effect;
}

const LONGEST_VALUE = 100;
const MOST_TOLD = 20;

/** `spec.maxBudget: Invalid value: "ten": must be a decimal number of dollars …`, as Kubernetes says it. */
export function toSentence({ path, type, value, message }: Violation): string {
  const shown = value === undefined || isLarge(value) ? [] : [shorten(value)];
  return [path, ...(type === undefined ? [] : [type]), ...shown, message].join(': ');
}

/** Each sentence once, and not more than anybody reads. */
export function toSentences(findings: ReadonlyArray<Violation>): ReadonlyArray<string> {
  const sentences = [...new Set(findings.map(toSentence))];
  const left = sentences.length - MOST_TOLD;
  return left <= 0 ? sentences : [...sentences.slice(0, MOST_TOLD), `and ${left} more`];
}

/** One mistake in its sentence; several as a list, the most important first. */
export function toText(findings: ReadonlyArray<Violation>): string {
  const sentences = toSentences(findings);
  if (sentences.length === 1) return sentences[0] ?? '';
  return sentences.map((sentence) => `- ${sentence}`).join('\n');
}

/** What a condition says: the first rule is its reason, all of them are its message. Undefined: nothing is wrong. */
export function toProblem(
  findings: ReadonlyArray<Violation>,
): { readonly reason: string; readonly message: string } | undefined {
  const [first] = findings;
  return first === undefined ? undefined : { reason: first.rule, message: toText(findings) };
}

/** Maps and lists are in front of whoever wrote them: only what fits a line is quoted. */
const isLarge = (value: unknown): boolean => typeof value === 'object' && value !== null;

function shorten(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  // A character is two units at most: a text of megabytes is not taken apart.
  const characters = [...value.slice(0, 2 * LONGEST_VALUE + 2)];
  return JSON.stringify(characters.length <= LONGEST_VALUE ? value : `${characters.slice(0, LONGEST_VALUE).join('')}…`);
}
