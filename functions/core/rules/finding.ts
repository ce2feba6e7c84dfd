// Findings about an object, and their text: the same in an answer of the admission webhook and in a condition.
import type { Violation } from '#crds/validation/violation.ts';
import type { OtherReason } from '../conditions/reasons.ts';

/**
 * | effect | on apply | on dry run | in a condition |
 * |---|---|---|---|
 * | `refuse` | refused | refused | shown |
 * | `refuse-unless-dry-run` | refused | a warning: the same file may create what is missing | shown |
 * | `warn` | a warning | a warning | |
 */
export type Effect = 'refuse' | 'refuse-unless-dry-run' | 'warn';

/** A violation, or an unwise value, with its effect. */
export interface Finding<Rule extends string = string> extends Violation {
  readonly rule: Rule;
  readonly effect: Effect;
}

const MAX_VALUE = 100;
const MAX_SENTENCES = 20;

/** `spec.maxBudget: Invalid value: "ten": must be a decimal number of dollars …`, as Kubernetes writes it. */
export function toSentence({ path, type, value, message }: Violation): string {
  const shown = value === undefined || isLarge(value) ? [] : [shorten(value)];
  return [path, ...(type === undefined ? [] : [type]), ...shown, message].join(': ');
}

/** Each sentence once, twenty at most. There may be thousands of findings, and a sentence takes kilobytes. */
export function toSentences(findings: ReadonlyArray<Violation>): ReadonlyArray<string> {
  const sentences = new Set<string>();
  for (const [at, finding] of findings.entries()) {
    if (sentences.size === MAX_SENTENCES) return [...sentences, `and ${findings.length - at} more`];
    sentences.add(toSentence(finding));
  }
  return [...sentences];
}

/** One finding as its sentence; several as a list, the most important first. */
export function toText(findings: ReadonlyArray<Violation>): string {
  const sentences = toSentences(findings);
  if (sentences.length === 1) return sentences[0] ?? '';
  return sentences.map((sentence) => `- ${sentence}`).join('\n');
}

/** The reason for a rule: its name, which may not be one of our reasons, such as that of a rule about a spec. */
type ReasonOf<Rule extends string> = string extends Rule ? OtherReason : Rule;

/** The reason and message of a condition: the first rule, and all sentences. Undefined: no findings. */
export function toProblem<Rule extends string>(findings: ReadonlyArray<Violation & { readonly rule: Rule }>) {
  const [first] = findings;
  // TypeScript does not follow a conditional type of a type parameter.
  return first === undefined ? undefined : { reason: first.rule as ReasonOf<Rule>, message: toText(findings) };
}

/** Whether a value is a map or a list, which messages do not quote: its author has it in the file. */
const isLarge = (value: unknown): boolean => typeof value === 'object' && value !== null;

function shorten(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  // A character is two units at most: a text of megabytes is not taken apart.
  const characters = [...value.slice(0, 2 * MAX_VALUE + 2)];
  return JSON.stringify(characters.length <= MAX_VALUE ? value : `${characters.slice(0, MAX_VALUE).join('')}…`);
}
