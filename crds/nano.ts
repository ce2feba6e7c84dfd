// How many nano-dollars are an amount, for us and for the API server? Without zod, so that judging a good object needs none.

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
