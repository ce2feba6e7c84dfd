// How is a refusal, or a list of warnings, said to whoever applied the object?
import { type Finding, toSentences, toText } from '#core/finding.ts';
import type { Subject } from './subject.ts';

/** One mistake in one line; several as a list, the most important first. */
export function toMessage(refused: ReadonlyArray<Finding>, { kind, object }: Subject): string {
  if (toSentences(refused).length === 1) return toText(refused);
  const name = object.metadata.name === undefined ? '' : ` ${JSON.stringify(object.metadata.name)}`;
  return `${kind.kind}${name} has ${refused.length} mistakes:\n${toText(refused)}`;
}

export const toWarnings = (warned: ReadonlyArray<Finding>): ReadonlyArray<string> => toSentences(warned);
