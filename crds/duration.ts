// How are durations written?
import * as z from 'zod';
import { ruled } from './ruled.ts';
import { durationAtMost } from './rules.ts';
import { DURATION } from './seconds.ts';

/** A number and a unit: `s`, `m`, `h`, `d`, `w`, `mo` (30 days); at most 36,525 days. */
export const Duration = ruled(
  z
    .string()
    .regex(DURATION, 'is not a duration; write a number from 1 and one of the units s, m, h, d, w, mo, e.g. "30d"')
    .max(16),
  [durationAtMost],
);
