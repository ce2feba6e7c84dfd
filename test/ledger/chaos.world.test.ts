// Money under chaos: `kill -9` of everything in random order, under load. `npm run bench -- faults` runs longer.
import { expect, test } from 'vitest';
import { whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { causeChaos } from './chaos/chaos.ts';

const missing = whyNoRedis();

describeUnless(missing, 'kill -9 in random order, under load with open streams', () => {
  // `npm run bench -- faults` runs for a minute and over many seeds.
  test.each([
    { seed: 1, gateways: 1 },
    { seed: 2, gateways: 2 },
  ])(
    '$gateways gateways, seed $seed: completed replies are charged once, other requests at most their reservations, counters equal sums, and requests work again without help',
    async ({ seed, gateways }) => {
      const { wrong, completed, faults, statuses } = await causeChaos({ seed, gateways, millis: 9000 });
      expect({ wrong, faults, statuses }).toEqual({ wrong: [], faults, statuses });
      expect(completed).toBeGreaterThan(5);
    },
  );
});
