// The clock: what time it is, as an argument of every function.
import type { Millis } from './money.ts';

export interface Clock {
  now(): Millis;
}
