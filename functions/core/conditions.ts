// Conditions of an object, judged anew: times move only when a status does.
import type { Condition } from '#crds/fragments.ts';
import type { Millis } from './ports/money.ts';

/** What was judged: `status`, one CamelCase word why, and a sentence for people. */
export interface Judgement {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** The longest message that the CRDs take. */
const MAX_MESSAGE = 32_768;

/**
 * The judgements as conditions, in their order, followed by conditions of other types, which other controllers keep there.
 * `lastTransitionTime` moves only when `status` does, so judging the same thing again changes nothing.
 */
export function toConditions(
  judged: ReadonlyArray<Judgement>,
  before: ReadonlyArray<Condition>,
  at: { readonly generation: number; readonly now: Millis },
): Condition[] {
  const ours = judged.map(({ type, status, reason, message }): Condition => {
    const old = before.find((condition) => condition.type === type);
    return {
      type,
      status,
      reason,
      message: message.slice(0, MAX_MESSAGE),
      lastTransitionTime: old?.status === status ? old.lastTransitionTime : toTimestamp(at.now),
      observedGeneration: at.generation,
    };
  });
  const others = before.filter(({ type }) => !judged.some((judgement) => judgement.type === type));
  return [...ours, ...others];
}

/** RFC 3339 in UTC, whole seconds: what Kubernetes writes. */
export function toTimestamp(millis: Millis): string {
  return `${new Date(millis).toISOString().slice(0, 19)}Z`;
}
