// What a reply cost is in the store soon after its last byte.
import { expect } from 'vitest';
import { whyNoRedis } from '../redis.ts';
import { testUnless } from '../skip-unless.ts';
import { measureArrivals } from './chaos/arrival.ts';
import { startHarness } from './chaos/harness.ts';

const missing = whyNoRedis();
/** A quarter of a second is the promise, and what `npm run bench -- faults` measures; a machine that does other things too has more. */
const BOUND = 5000;

testUnless(
  missing,
  'what a reply cost, or that it cost nothing, is in the store soon after its last byte',
  async () => {
    const harness = await startHarness(1, [10n ** 15n]);
    try {
      const [key] = harness.keys;
      if (key === undefined) throw new Error('there is no key');
      const { settled, released } = await measureArrivals(harness, key, 20);
      expect([...settled, ...released]).toHaveLength(40);
      expect([...settled, ...released].filter((millis) => millis > BOUND)).toEqual([]);
    } finally {
      await harness.stop();
    }
  },
);
