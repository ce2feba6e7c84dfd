// What is wrong with an object, where, how bad is it, and how is that said?
import type { Finding as Mistake } from '#crds/judge.ts';

/**
 * | effect | on apply | on dry run |
 * |---|---|---|
 * | `refuse` | refused | refused |
 * | `refuse-unless-dry-run` | refused | a warning: the same file may create what is missing |
 * | `warn` | a warning | a warning |
 */
export type Effect = 'refuse' | 'refuse-unless-dry-run' | 'warn';

/** `value` is what stands at `path`, undefined where nothing does; `message` is what is wrong and what to do. */
export interface Finding extends Mistake {
  readonly effect: Effect;
}

const LONGEST_VALUE = 100;

/** `spec.maxBudget: "ten": is no amount of dollars; write …` */
export function toSentence({ path, value, message }: Mistake): string {
  if (value === undefined || isLarge(value)) return `${path}: ${message}`;
  return `${path}: ${shorten(value)}: ${message}`;
}

/** Maps and lists are in front of whoever wrote them: only what fits a line is quoted. */
const isLarge = (value: unknown): boolean => typeof value === 'object' && value !== null;

function shorten(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  const characters = [...value];
  return JSON.stringify(characters.length <= LONGEST_VALUE ? value : `${characters.slice(0, LONGEST_VALUE).join('')}…`);
}
