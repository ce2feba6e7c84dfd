// How long is a duration in seconds, for us and for the API server? Without zod, so that judging a good object needs none.

export const DURATION = /^[1-9][0-9]*(s|m|h|d|w|mo)$/u;

/** Longest duration: 36,525 days. */
export const MAX_SECONDS = 36_525 * 86_400;
/** `mo` is 30 days. */
export const SECONDS_PER_UNIT: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
  mo: 2_592_000,
};

/** Seconds of a well-formed duration. */
export function secondsOf(duration: string): number {
  const [, count, unit] = /^([0-9]+)([a-z]+)$/.exec(duration) ?? [];
  return Number(count ?? 0) * (SECONDS_PER_UNIT[unit ?? ''] ?? 0);
}

/** CEL: the same, of the well-formed duration that the expression `duration` gives. */
export function secondsInCel(duration: string): string {
  return (
    `(int(${duration}.substring(0, size(${duration}) - (${duration}.endsWith('mo') ? 2 : 1))) * ` +
    `(${duration}.endsWith('mo') ? 2592000 : ${duration}.endsWith('w') ? 604800 : ${duration}.endsWith('d') ? 86400 : ` +
    `${duration}.endsWith('h') ? 3600 : ${duration}.endsWith('m') ? 60 : 1))`
  );
}

/** CEL: whether it is a duration at all. Where it is not, the schema's pattern says so and a rule stays silent. */
export function isDurationInCel(duration: string): string {
  return `${duration}.matches('${DURATION.source}')`;
}
