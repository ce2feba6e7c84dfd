// Is a key's value due to be replaced, and what is said of it? Told from the value's own age: nothing slides, nothing is remembered.
import { type Judgement, toTimestamp } from '#core/conditions.ts';
import { parseDuration } from '#core/duration.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, LiveValue } from '#core/ports/registry.ts';
import { askedFor } from '#core/rotation.ts';
import { ROTATE_ANNOTATION } from '#crds/group.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { expiryOf } from './policies.ts';

/** Longer than any run: a value that was recorded and is in no Secret by then was made by a run that died. */
const LOST_AFTER: Millis = 600_000;

/** Why the value is to be replaced now; undefined while it is not. `time` is the database's, as all ages are. */
export function whyRotate(key: VirtualKey, value: LiveValue, claim: Claim, time: Millis): string | undefined {
  // Blocked keys are rotated like all others. An expired one is when it lives again.
  const expiry = expiryOf(key, claim);
  if (expiry !== undefined && expiry <= time) return undefined;
  const asked = askedFor(key.metadata.annotations);
  if (asked !== undefined && asked !== value.asked) return `the annotation ${ROTATE_ANNOTATION} asks for a new value`;
  const due = dueAt(key, value);
  if (due === undefined || due > time) return undefined;
  return `its value is from ${toTimestamp(value.createdAt)}, and rotation.every is ${key.spec.rotation?.every}`;
}

/** When `rotation.every` wants another value. */
function dueAt({ spec: { rotation } }: VirtualKey, { createdAt }: LiveValue): Millis | undefined {
  const every = rotation === undefined ? undefined : parseDuration(rotation.every);
  return every === undefined ? undefined : createdAt + every;
}

export interface Others {
  /** It replaced them: they work on for the overlap. */
  readonly replaced: ReadonlyArray<string>;
  /** Nobody was ever given them: a run that died, or was slower than another, had made them. */
  readonly lost: ReadonlyArray<string>;
}

/** The values without an end beside the one that is published. */
export function othersOf({ values }: Claim, published: string, time: Millis): Others {
  const current = values.filter(({ notAfter }) => notAfter === undefined);
  const at = current.findIndex(({ hash }) => hash === published);
  return {
    replaced: current.slice(0, at).map(({ hash }) => hash),
    lost: current.slice(at + 1).flatMap(({ hash, createdAt }) => (createdAt + LOST_AFTER <= time ? [hash] : [])),
  };
}

/** Whether the value works, but only until an end that was set. */
export const isOverlapping = ({ values }: Claim, wanted: string | undefined, time: Millis): boolean =>
  values.some(({ hash, notAfter }) => hash === wanted && notAfter !== undefined && notAfter > time);

/** Values whose end is over: they work no more, and need not be kept. */
export const endedOf = ({ values }: Claim, time: Millis): ReadonlyArray<string> =>
  values.flatMap(({ hash, notAfter }) => (notAfter !== undefined && notAfter <= time ? [hash] : []));

/** Until when the last of those that were replaced works. */
function worksUntil({ values }: Claim, time: Millis): Millis | undefined {
  const ends = values.flatMap(({ notAfter }) => (notAfter !== undefined && notAfter > time ? [notAfter] : []));
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** The condition `Rotation`: where the key's value stands. Undefined for a key that is not rotated. */
export function judgeRotation(
  key: VirtualKey,
  claim: Claim,
  published: string | undefined,
  time: Millis,
): Judgement | undefined {
  const value = claim.values.find(({ hash }) => hash === published);
  const asked = key.metadata.annotations?.[ROTATE_ANNOTATION];
  if (asked !== undefined && askedFor(key.metadata.annotations) === undefined) {
    const message = `the annotation ${ROTATE_ANNOTATION} is no text of 1 to 256 visible characters: it asks for nothing`;
    return { type: 'Rotation', status: 'False', reason: 'InvalidAnnotation', message };
  }
  const until = worksUntil(claim, time);
  if (value === undefined || (key.spec.rotation === undefined && until === undefined)) return undefined;
  const expiry = expiryOf(key, claim);
  if (expiry !== undefined && expiry <= time) {
    const message = 'an expired key keeps its value; it is rotated when spec.duration is lengthened';
    return { type: 'Rotation', status: 'False', reason: 'Expired', message };
  }
  const due = dueAt(key, value);
  const sentences = [
    `the key is from ${toTimestamp(value.createdAt)}`,
    ...(until === undefined ? [] : [`the one before works until ${toTimestamp(until)}`]),
    due === undefined ? 'no other is planned' : `the next comes at ${toTimestamp(due)}`,
  ];
  return {
    type: 'Rotation',
    status: 'True',
    reason: until === undefined ? 'Scheduled' : 'Overlap',
    message: sentences.join('; '),
  };
}

/** What the event of a new value says, if the one before works on. */
export function toldOfRotation(
  key: VirtualKey,
  claim: Claim,
  time: Millis,
): { readonly reason: 'KeyRotated'; readonly message: string } | undefined {
  const before = claim.values.find(({ hash }) => hash === key.status?.keyID);
  if (before?.notAfter === undefined || before.notAfter <= time) return undefined;
  return { reason: 'KeyRotated', message: `the one before works until ${toTimestamp(before.notAfter)}` };
}
