// The budget of a namespace, and of a Team of two namespaces, under chaos: no nano-dollar more is spent.
import { expect, test } from 'vitest';
import { whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { causeQuotaChaos } from './chaos/quota.ts';

describeUnless(
  whyNoRedis(),
  'a tenant that makes, moves and uses keys while everything is killed and key policies are edited',
  () => {
    test.each([1, 2, 3])(
      'spends no more than its namespaces and their Team may, seed %i',
      { timeout: 120_000 },
      async (seed) => {
        const { wrong, completed, events, statuses } = await causeQuotaChaos({ seed, millis: 15_000 });
        expect({ wrong, events, statuses }).toEqual({ wrong: [], events, statuses });
        expect(completed).toBeGreaterThan(50);
      },
    );
  },
);
