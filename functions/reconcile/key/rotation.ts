// Rotation of a key value. It is computed from the ages of the values; nothing else is stored.
import { toTimestamp } from '#core/conditions/conditions.ts';
import { requestedRotation } from '#core/keys/rotation.ts';
import { parseDuration } from '#core/money/duration.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, LiveValue } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { ROTATE_ANNOTATION } from '#crds/names/group.ts';

/** Longer than any run. A value that is older than this and in no Secret was created by a run that died. */
const LOST_AFTER: Millis = 600_000;

type Values = Pick<Claim, 'values'>;

/**
 * The end of a VirtualKey's lifetime, counted from the creation of its claim. A rotation does not move the end; an edit
 * of `duration` changes or removes it.
 */
export function expiryOf({ spec: { duration } }: VirtualKey, { anchor }: Pick<Claim, 'anchor'>): Millis | undefined {
  const lifetime = duration === undefined ? undefined : parseDuration(duration);
  return lifetime === undefined ? undefined : anchor + lifetime;
}

/**
 * Why the value must be replaced now; undefined if it need not be. `time` is the database's clock, by which all ages
 * are counted.
 */
export function whyRotate(
  key: VirtualKey,
  value: LiveValue,
  claim: Pick<Claim, 'anchor'>,
  time: Millis,
): string | undefined {
  // Blocked VirtualKeys are rotated like all others. An expired VirtualKey is rotated when its lifetime is extended.
  if (isExpired(key, claim, time)) return undefined;
  const requested = requestedRotation(key.metadata.annotations);
  if (requested !== undefined && requested !== value.rotation)
    return `the annotation ${ROTATE_ANNOTATION} asks for a new value`;
  const due = dueAt(key, value);
  if (due === undefined || due > time) return undefined;
  return `its value is from ${toTimestamp(value.createdAt)}, and rotation.every is ${key.spec.rotation?.every}`;
}

export function isExpired(key: VirtualKey, claim: Pick<Claim, 'anchor'>, time: Millis): boolean {
  const expiry = expiryOf(key, claim);
  return expiry !== undefined && expiry <= time;
}

/** The time of the next rotation by `rotation.every`. */
export function dueAt({ spec: { rotation } }: VirtualKey, { createdAt }: LiveValue): Millis | undefined {
  const every = rotation === undefined ? undefined : parseDuration(rotation.every);
  return every === undefined ? undefined : createdAt + every;
}

/**
 * The values without an end, except the published one. `replaced`: values that the published one has replaced; they
 * work until the end of the overlap. `lost`: values that were never published, because the run that created them died
 * or was slower than another. They are younger than the published value, or were created a moment before it and never
 * shown in status.
 */
export function unpublishedValues({ values }: Values, published: string, keyID: string | undefined, time: Millis) {
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
 * The values that end when the Secret that published them is lost. A value that another run is about to publish is not
 * among them.
 */
export function lostSecretValues({ values }: Values, keyID: string | undefined, time: Millis): ReadonlyArray<string> {
  return values.flatMap(({ hash, createdAt, notAfter }) =>
    notAfter === undefined && (hash === keyID || createdAt + LOST_AFTER <= time) ? [hash] : [],
  );
}

/** Whether the value works now but has an end. */
export const isOverlapping = ({ values }: Values, value: string, time: Millis): boolean =>
  values.some(({ hash, notAfter }) => hash === value && notAfter !== undefined && notAfter > time);

/**
 * The maximum number of values of a VirtualKey that work until an end. Each rotation adds one, and the owner of the
 * VirtualKey decides how often it is rotated.
 */
const MAX_OVERLAPPING = 16;

/** Values whose end is over, and the oldest of too many overlapping values: they can be deleted. */
export function removableValues({ values }: Values, time: Millis): ReadonlyArray<string> {
  const { true: ended = [], false: overlapping = [] } = Object.groupBy(
    values.filter(({ notAfter }) => notAfter !== undefined),
    ({ notAfter = time }) => `${notAfter <= time}` as const,
  );
  return [...ended, ...overlapping.slice(0, -MAX_OVERLAPPING)].map(({ hash }) => hash);
}

/** The end of the last replaced value that still works. */
export function overlapEnd({ values }: Values, time: Millis): Millis | undefined {
  const ends = values.flatMap(({ notAfter }) => (notAfter !== undefined && notAfter > time ? [notAfter] : []));
  return ends.length === 0 ? undefined : Math.max(...ends);
}
