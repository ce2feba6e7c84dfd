// Conditions of an object. The time of a condition changes only with its status.
import type { Condition } from '#crds/kinds/shared-fields.ts';
import { cutText } from '../json/text.ts';
import type { Millis } from '../ports/money.ts';
import type { ConditionType, OtherReason, Reason } from './reasons.ts';

/** The evaluated state of a condition: `status`, a reason, and a sentence for people. */
export interface ConditionState extends Readonly<Pick<Condition, 'status' | 'message'>> {
  readonly type: ConditionType;
  readonly reason: Reason | OtherReason;
}

/**
 * The maximum number of characters of a message. CRDs allow 32,768, but tenants choose names in messages, and each
 * status takes memory in etcd and in the reconciler.
 */
export const MAX_MESSAGE = 2048;

/**
 * These states as conditions, in their order, followed by conditions of other types, which belong to other controllers.
 * `lastTransitionTime` changes only with `status`, so a second evaluation changes nothing.
 */
export function toConditions(
  evaluated: ReadonlyArray<ConditionState>,
  before: ReadonlyArray<Condition>,
  at: { readonly generation: number; readonly now: Millis },
): Condition[] {
  const ours = evaluated.map(({ type, status, reason, message }): Condition => {
    const old = before.find((condition) => condition.type === type);
    return {
      type,
      status,
      reason,
      message: cutText(message, MAX_MESSAGE),
      lastTransitionTime: old?.status === status ? old.lastTransitionTime : toTimestamp(at.now),
      observedGeneration: at.generation,
    };
  });
  const others = before.filter(({ type }) => !evaluated.some((state) => state.type === type));
  return [...ours, ...others];
}

/** An instant as Kubernetes writes it: RFC 3339 in UTC, whole seconds. */
export function toTimestamp(millis: Millis): string {
  return `${new Date(millis).toISOString().slice(0, 19)}Z`;
}
