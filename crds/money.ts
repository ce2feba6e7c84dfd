// How are dollars written, and compared to the nano-dollar?
import * as z from 'zod';

const MONEY = /^((0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?|1000000000(\.0{1,9})?)$/u;

/** Dollars as a decimal string: `12`, `0.5`, `12.50`; at most 1,000,000,000 and nine decimals (a nano-dollar). */
export const Money = z
  .string()
  .regex(
    MONEY,
    'is not an amount of dollars; write it like "12", "0.5" or "12.50", without a sign, with at most nine decimals, at most "1000000000"',
  )
  .max(20);

/** Exact nano-dollars of a well-formed amount. */
export function nanoOf(money: string): bigint {
  const [whole = '0', fraction = ''] = money.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** CEL: the same, of the well-formed amount that the expression `money` gives. */
export const nanoInCel = (money: string) =>
  `(${money}.contains('.') ? int(${money}.split('.')[0]) * 1000000000 + int((${money}.split('.')[1] + '000000000').substring(0, 9)) : int(${money}) * 1000000000)`;

/** CEL: whether it is an amount of money at all. */
export const isMoneyInCel = (money: string) => `${money}.matches('^[0-9]{1,10}([.][0-9]{1,9})?$')`;
