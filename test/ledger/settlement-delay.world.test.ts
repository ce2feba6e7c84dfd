// The cost of a reply is in the counter store soon after its last byte.
import { expect } from 'vitest';
import { whyNoRedis } from '../support/redis.ts';
import { testUnless } from '../support/skip-unless.ts';
import { startHarness } from './chaos/harness.ts';
import { measureSettlementDelays } from './chaos/settlement-delay.ts';

const missing = whyNoRedis();
/**
 * The goals, a quarter of a second for costs and a second for idle escrow, are measured by `npm run bench -- faults`. A
 * busy machine gets more time.
 */
const BOUND = 5000;

testUnless(missing, 'the cost of a reply, also of zero, is in the store soon after its last byte', async () => {
  const harness = await startHarness(1, [10n ** 15n]);
  try {
    const [key] = harness.keys;
    if (key === undefined) throw new Error('there is no key');
    const { settled, released } = await measureSettlementDelays(harness, key, 5);
    expect([...settled, ...released]).toHaveLength(10);
    expect([...settled, ...released].filter((millis) => millis > BOUND)).toEqual([]);
  } finally {
    await harness.stop();
  }
});
