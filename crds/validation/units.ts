// Durations, dollars and lengths of text: how each is written and counted, in TypeScript and in CEL. Free of zod: the
// functions count with these too.

export const DURATION = /^[1-9][0-9]*(s|m|h|d|w|mo)$/u;

/** The longest duration: 36,525 days. */
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
export const secondsInCel = (duration: string): string =>
  `(int(${duration}.substring(0, size(${duration}) - (${duration}.endsWith('mo') ? 2 : 1))) * ` +
  `(${duration}.endsWith('mo') ? 2592000 : ${duration}.endsWith('w') ? 604800 : ${duration}.endsWith('d') ? 86400 : ` +
  `${duration}.endsWith('h') ? 3600 : ${duration}.endsWith('m') ? 60 : 1))`;

/**
 * CEL: whether the text is a duration at all. If not, the schema's pattern reports that and the rule does not apply.
 */
export const isDurationInCel = (duration: string): string => `${duration}.matches('${DURATION.source}')`;

/** Dollars as a decimal string: `12`, `0.5`, `12.50`; at most 1,000,000,000 and nine decimals (a nano-dollar). */
export const MONEY = /^((0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?|1000000000(\.0{1,9})?)$/u;

/** Exact nano-dollars of a well-formed amount. */
export function nanoOf(money: string): bigint {
  const [whole = '0', fraction = ''] = money.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** CEL: the same, of the well-formed amount that the expression `money` gives. */
export const nanoInCel = (money: string): string =>
  `(${money}.contains('.') ? int(${money}.split('.')[0]) * 1000000000 + int((${money}.split('.')[1] + '000000000').substring(0, 9)) : int(${money}) * 1000000000)`;

/** CEL: whether the text is an amount of money at all. */
export const isMoneyInCel = (money: string): string => `${money}.matches('^[0-9]{1,10}([.][0-9]{1,9})?$')`;

/**
 * Whether a text has at most `max` characters as Kubernetes counts them: code points, which are never more than UTF-16
 * units.
 */
export const fitsIn = (max: number, text: string): boolean =>
  text.length <= max || (text.length <= 2 * max && [...text].length <= max);

/** Blanks inside but not at the ends, no control characters. */
export const FREE_TEXT = /^[^\p{Z}\p{C}]([^\p{Cc}\p{Zl}\p{Zp}]*[^\p{Z}\p{C}])?$/u;
export const MAX_FREE_TEXT = 256;

/** The check of the schema `FreeText`, for texts that no schema reads. */
export const isFreeText = (text: string): boolean => fitsIn(MAX_FREE_TEXT, text) && FREE_TEXT.test(text);
