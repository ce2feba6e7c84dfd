// Decimal strings of dollars as nano-dollars and back, exactly.
import { nanoOf } from '#crds/validation/units.ts';
import type { Nano } from '../ports/money.ts';

/**
 * The written form of money: `12`, `0.5`, `12.50`; never `.5`, `5.`, `012`, a sign, an exponent or a blank (DESIGN 10,
 * Bounds).
 */
const MONEY_PATTERN = /^(0|[1-9][0-9]*)(\.[0-9]{1,9})?$/;

/** Exact nano-dollars of a decimal string of dollars; undefined if the text is none. */
export function parseMoney(text: string): Nano | undefined {
  return MONEY_PATTERN.test(text) ? nanoOf(text) : undefined;
}

/** The shortest exact decimal string of dollars: `0`, `0.5`, `12.000000001`; `-0.5` of a correction. */
export function formatMoney(amount: Nano): string {
  const sign = amount < 0n ? '-' : '';
  const digits = (amount < 0n ? -amount : amount).toString().padStart(10, '0');
  let fraction = digits.slice(-9);
  while (fraction.endsWith('0')) fraction = fraction.slice(0, -1);
  return `${sign}${digits.slice(0, -9)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Nano-dollars of a JSON number of dollars, rounded up from its shortest decimal; undefined if it is no amount. */
export function nanoOfNumber(dollars: unknown): Nano | undefined {
  if (typeof dollars !== 'number' || !Number.isFinite(dollars) || dollars < 0) return undefined;
  const [digits = '', exponent = '0'] = String(dollars).split('e');
  const [whole = '', fraction = ''] = digits.split('.');
  const scale = Number(exponent) - fraction.length + 9;
  const amount = BigInt(whole + fraction);
  if (scale >= 0) return amount * 10n ** BigInt(scale);
  const divisor = 10n ** BigInt(-scale);
  return (amount + divisor - 1n) / divisor;
}

export const larger = (a: Nano, b: Nano): Nano => (a > b ? a : b);
export const smaller = (a: Nano, b: Nano): Nano => (a < b ? a : b);
