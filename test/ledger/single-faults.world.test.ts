// Single faults: requests are served or get 503, never 401, and work again without help.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { whyNoRedis } from '../support/redis.ts';
import { named } from '../support/skip-unless.ts';
import { type Harness, startHarness } from './chaos/harness.ts';
import { type ClientReply, recovered } from './chaos/load.ts';
import { observeFault, SINGLE_FAULTS } from './chaos/single-faults.ts';
import { verify } from './chaos/verify.ts';

/** The only allowed replies. Above all, an unreachable database never makes a key unknown (401). */
const ALLOWED_REPLIES = /^(200|503 ledger_unavailable|no answer)$/;
/** A second, two while a store is rebuilt, and a margin for the machine; `npm run bench -- faults` measures it. */
const BOUND = 5000;

const missing = whyNoRedis();

describe.skipIf(missing !== undefined).each([
  { store: 'memory', gateways: 1 },
  { store: 'redis', gateways: 2 },
  { store: 'sentinel', gateways: 2 },
  { store: 'cluster', gateways: 2 },
] as const)(
  named('one fault alone, with $gateways gateways and the store in $store', missing),
  ({ store, gateways }) => {
    const faults = SINGLE_FAULTS.filter(({ stores }) => stores.includes(store));
    let harness: Harness;
    const seen: ClientReply[] = [];

    beforeAll(async () => {
      harness = await startHarness(gateways, [10n ** 15n, ...faults.map(() => 10n ** 15n)], { store });
    });
    afterAll(() => harness?.stop());

    test.each(faults.map((fault, at) => ({ ...fault, at })))(
      '$name: requests are served or get 503 in time, never 401, and work again without help',
      async ({ at, ...fault }) => {
        const [fresh] = harness.keys.slice(at + 1);
        if (fresh === undefined) throw new Error('there is no key for it');
        const observed = await observeFault(harness, fault, fresh);
        seen.push(...observed.seen);
        const replies = observed.meanwhile.map(({ status, code }) => `${status ?? 'no answer'} ${code ?? ''}`.trim());
        expect([...new Set(replies)].filter((one) => !ALLOWED_REPLIES.test(one))).toEqual([]);
        const refused = observed.meanwhile.filter(({ status }) => status === 503);
        if (fault.refuses) expect(refused.length).toBeGreaterThan(0);
        expect(refused.filter(({ took }) => took > BOUND)).toEqual([]);
      },
    );

    test('after all of them: completed replies were charged once, other requests at most their reservations, and counters equal sums', async () => {
      // A request of each key loads every counter again.
      seen.push(...(await recovered(harness, harness.keys)));
      const { wrong, completed } = await verify(harness, seen);
      expect(wrong).toEqual([]);
      expect(completed).toBeGreaterThan(3 * faults.length);
    });
  },
);
