// How are dollars written?
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
