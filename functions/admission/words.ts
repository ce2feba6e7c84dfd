// How is a refusal, or a list of warnings, said to whoever applied the object?
import { type Finding, toSentence } from './finding.ts';
import type { Subject } from './subject.ts';

const MOST_TOLD = 20;

/** One mistake in one line; several as a list, the most important first. */
export function toMessage(refused: ReadonlyArray<Finding>, { kind, object }: Subject): string {
  const sentences = told(refused);
  if (sentences.length === 1) return sentences[0] ?? '';
  const name = object.metadata.name === undefined ? '' : ` ${JSON.stringify(object.metadata.name)}`;
  return `${kind.kind}${name} has ${refused.length} mistakes:\n${sentences.map((sentence) => `- ${sentence}`).join('\n')}`;
}

export const toWarnings = (warned: ReadonlyArray<Finding>): ReadonlyArray<string> => told(warned);

function told(findings: ReadonlyArray<Finding>): string[] {
  const sentences = [...new Set(findings.map(toSentence))];
  const left = sentences.length - MOST_TOLD;
  return left <= 0 ? sentences : [...sentences.slice(0, MOST_TOLD), `and ${left} more`];
}
