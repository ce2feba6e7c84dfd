import { expect } from 'vitest';
import { whyNoRedis } from '../redis.ts';
import { testUnless } from '../skip-unless.ts';
import { measureArrivals } from './faults/arrival.ts';
import { makeBed } from './faults/bed.ts';

const missing = whyNoRedis();
/** A quarter of a second is the promise, and what `npm run bench -- faults` measures; a machine that does other things too has more. */
const PATIENCE = 2000;

testUnless(
  missing,
  'what a reply cost, or that it cost nothing, is in the store soon after its last byte',
  async () => {
    const bed = await makeBed(1, [10n ** 15n]);
    try {
      const [key] = bed.keys;
      if (key === undefined) throw new Error('there is no key');
      const { settled, released } = await measureArrivals(bed, key, 20);
      expect([...settled, ...released]).toHaveLength(40);
      expect([...settled, ...released].filter((millis) => millis > PATIENCE)).toEqual([]);
    } finally {
      await bed.stop();
    }
  },
);
