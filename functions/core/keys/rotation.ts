// Rotation of a key value: when it is replaced, and for how long the previous value still works.
import { ROTATE_ANNOTATION } from '#crds/names/group.ts';
import type { ObjectMeta } from '#crds/names/object-meta.ts';
import { isFreeText } from '#crds/validation/units.ts';
import { parseDuration } from '../money/duration.ts';
import type { Millis } from '../ports/money.ts';

/** The overlap of a rotation by annotation, if the spec has no rotation: an hour. */
const OVERLAP_ONCE: Millis = 3_600_000;

/**
 * The text of the rotation annotation; each new text is one rotation. A value that is no text of 1 to 256 characters is
 * ignored.
 */
export function requestedRotation(annotations: ObjectMeta['annotations']): string | undefined {
  const asked = annotations?.[ROTATE_ANNOTATION];
  return asked !== undefined && isFreeText(asked) ? asked : undefined;
}

/** The time for which a replaced value still works. */
export function overlapOf(
  rotation: { readonly every: string; readonly overlap?: string | undefined } | undefined,
): Millis {
  if (rotation === undefined) return OVERLAP_ONCE;
  const overlap = rotation.overlap ?? defaultOverlap(rotation.every);
  return (overlap === undefined ? undefined : parseDuration(overlap)) ?? 0;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const;

/**
 * The default overlap: a tenth of the period, at most a day. Undefined: the period is no duration, or less than two
 * seconds.
 */
export function defaultOverlap(every: unknown): string | undefined {
  const period = typeof every === 'string' ? parseDuration(every) : undefined;
  if (period === undefined || period < 2000) return undefined;
  const seconds = Math.max(1, Math.min(Math.floor(period / 10_000), 86_400));
  const [unit, size] = UNITS.find(([, length]) => seconds % length === 0) ?? ['s', 1];
  return `${seconds / size}${unit}`;
}
