// What do these tokens cost, exactly? Decimal prices in, nano-dollars out, rounded up once (DESIGN 10, Money).
import type { Tokens } from './ports/books.ts';
import type { Nano } from './ports/money.ts';
import type { SnapshotEntry } from './snapshot.ts';

/** Dollars per million tokens, each as an integer of 10^-18 dollars. */
export interface Price {
  readonly input: bigint;
  readonly output: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite: bigint;
}

const DECIMALS = 18;
/** From 10^-18 dollars per million tokens to nano-dollars per token. */
const PER_NANO = 10n ** BigInt(DECIMALS - 9 + 6);
const PRICE_PATTERN = /^(0|[1-9][0-9]*)(\.[0-9]{1,18})?$/;

/** The price of an entry; undefined when it has none, or one that is not written as a price. `"0"` is a price. */
export function toPrice(written: SnapshotEntry['price']): Price | undefined {
  if (written === undefined) return undefined;
  const input = parsePrice(written.input);
  const output = parsePrice(written.output);
  const cachedInput = parsePrice(written.cachedInput ?? written.input);
  const cacheWrite = parsePrice(written.cacheWrite ?? written.input);
  if (input === undefined || output === undefined || cachedInput === undefined || cacheWrite === undefined) {
    return undefined;
  }
  return { input, output, cachedInput, cacheWrite };
}

/** What a reply with this usage costs. */
export function costOf(tokens: Tokens, price: Price): Nano {
  const cached = Math.min(tokens.cachedInput, tokens.input);
  const written = Math.min(tokens.cacheWrite, tokens.input - cached);
  const plain = tokens.input - cached - written;
  return roundUp(
    BigInt(plain) * price.input +
      BigInt(cached) * price.cachedInput +
      BigInt(written) * price.cacheWrite +
      BigInt(tokens.output) * price.output,
  );
}

/** The most that so many tokens can cost, however the provider's cache splits the input. */
export function mostOf(input: bigint, output: bigint, price: Price): Nano {
  return roundUp(input * dearestInput(price) + output * price.output);
}

/** How many output tokens `amount` pays for after the input at its dearest; undefined when output is free. */
export function outputWithin(amount: Nano, input: bigint, price: Price): bigint | undefined {
  if (price.output === 0n) return undefined;
  const left = amount * PER_NANO - input * dearestInput(price);
  return left <= 0n ? 0n : left / price.output;
}

function dearestInput({ input, cachedInput, cacheWrite }: Price): bigint {
  let most = input;
  for (const price of [cachedInput, cacheWrite]) if (price > most) most = price;
  return most;
}

function parsePrice(text: string): bigint | undefined {
  if (!PRICE_PATTERN.test(text)) return undefined;
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(DECIMALS, '0'));
}

function roundUp(amount: bigint): Nano {
  return (amount + PER_NANO - 1n) / PER_NANO;
}
