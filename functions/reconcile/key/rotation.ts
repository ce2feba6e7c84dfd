// Rotation of a key's value, computed from the ages of its values: nothing slides, nothing is remembered.
import { toTimestamp } from '#core/conditions/conditions.ts';
import { askedFor } from '#core/keys/rotation.ts';
import { parseDuration } from '#core/money/duration.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, LiveValue } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { ROTATE_ANNOTATION } from '#crds/names/group.ts';

/** Longer than any run: a value that was recorded and is in no Secret by then was made by a run that died. */
const LOST_AFTER: Millis = 600_000;

type Values = Pick<Claim, 'values'>;

/**
 * The end of a key's lifetime, which counts from the creation of its claim: it never slides, and an edit lengthens or
 * clears it.
 */
export function expiryOf({ spec: { duration } }: VirtualKey, { anchor }: Pick<Claim, 'anchor'>): Millis | undefined {
  const lifetime = duration === undefined ? undefined : parseDuration(duration);
  return lifetime === undefined ? undefined : anchor + lifetime;
}

/** Why the value is to be replaced now; undefined while it is not. `time` is the database's, as all ages are. */
export function whyRotate(
  key: VirtualKey,
  value: LiveValue,
  claim: Pick<Claim, 'anchor'>,
  time: Millis,
): string | undefined {
  // Blocked keys are rotated like all others. An expired one is when it lives again.
  if (isExpired(key, claim, time)) return undefined;
  const asked = askedFor(key.metadata.annotations);
  if (asked !== undefined && asked !== value.rotation)
    return `the annotation ${ROTATE_ANNOTATION} asks for a new value`;
  const due = dueAt(key, value);
  if (due === undefined || due > time) return undefined;
  return `its value is from ${toTimestamp(value.createdAt)}, and rotation.every is ${key.spec.rotation?.every}`;
}

export function isExpired(key: VirtualKey, claim: Pick<Claim, 'anchor'>, time: Millis): boolean {
  const expiry = expiryOf(key, claim);
  return expiry !== undefined && expiry <= time;
}

/** When `rotation.every` wants another value. */
export function dueAt({ spec: { rotation } }: VirtualKey, { createdAt }: LiveValue): Millis | undefined {
  const every = rotation === undefined ? undefined : parseDuration(rotation.every);
  return every === undefined ? undefined : createdAt + every;
}

/**
 * The values without an end beside the published one. `replaced`: those that it took the place of, which work on for
 * the overlap. `lost`:
 * those that were never published, because the run that made them died or was slower than another: younger than the
 * published one, or made a moment before it and never shown in status.
 */
export function othersOf({ values }: Values, published: string, keyID: string | undefined, time: Millis) {
  const current = values.filter(({ notAfter }) => notAfter === undefined);
  const since = current.find(({ hash }) => hash === published)?.createdAt ?? 0;
  const others = current.filter(({ hash }) => hash !== published);
  const isLost = ({ hash, createdAt }: LiveValue) => hash !== keyID && createdAt > since - LOST_AFTER;
  return {
    replaced: others.filter((value) => !isLost(value)).map(({ hash }) => hash),
    lost: others.filter((value) => isLost(value) && value.createdAt + LOST_AFTER <= time).map(({ hash }) => hash),
  };
}

/**
 * The values that go when the Secret that published them is lost. One that another run is about to publish is not among
 * them.
 */
export function publishedOf({ values }: Values, keyID: string | undefined, time: Millis): ReadonlyArray<string> {
  return values.flatMap(({ hash, createdAt, notAfter }) =>
    notAfter === undefined && (hash === keyID || createdAt + LOST_AFTER <= time) ? [hash] : [],
  );
}

/** Whether the value works, but only until an end that was set. */
export const isOverlapping = ({ values }: Values, wanted: string, time: Millis): boolean =>
  values.some(({ hash, notAfter }) => hash === wanted && notAfter !== undefined && notAfter > time);

/** Values of a key that work until an end that was set: each rotation adds one, and its owner decides how many there are. */
const MAX_OVERLAPPING = 16;

/** Values whose end is over, and the oldest of too many that overlap: they need not be kept. */
export function endedOf({ values }: Values, time: Millis): ReadonlyArray<string> {
  const { true: ended = [], false: overlapping = [] } = Object.groupBy(
    values.filter(({ notAfter }) => notAfter !== undefined),
    ({ notAfter = time }) => `${notAfter <= time}` as const,
  );
  return [...ended, ...overlapping.slice(0, -MAX_OVERLAPPING)].map(({ hash }) => hash);
}

/** Until when the last of those that were replaced works. */
export function worksUntil({ values }: Values, time: Millis): Millis | undefined {
  const ends = values.flatMap(({ notAfter }) => (notAfter !== undefined && notAfter > time ? [notAfter] : []));
  return ends.length === 0 ? undefined : Math.max(...ends);
}
