// Amounts, times and windows: integer nano-dollars, never a float (DESIGN 3, LEDGER 4).

/** Nano-dollars: 1 dollar = 1,000,000,000n. */
export type Nano = bigint;

/** Milliseconds since the Unix epoch, UTC. */
export type Millis = number;

/** One budget period of a scope: [start, end). Two windows are the same when both edges are. */
export interface Window {
  readonly start: Millis;
  readonly end: Millis;
}

/** An amount as databases and counter stores answer it: whole nano-dollars. More digits take seconds to print. */
export const STORED_AMOUNT = /^-?\d{1,40}$/;
