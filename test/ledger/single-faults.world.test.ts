// Single faults: requests are answered or told 503, never 401, and it works again by itself.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { whyNoRedis } from '../redis.ts';
import { named } from '../skip-unless.ts';
import { type Harness, startHarness } from './chaos/harness.ts';
import { recovered, type Seen } from './chaos/load.ts';
import { observeFault, SINGLE_FAULTS } from './chaos/single-faults.ts';
import { verify } from './chaos/verify.ts';

/** Nothing else is ever said: above all not that a key is unknown (401) when nobody can know. */
const TRUE_ANSWERS = /^(200|503 ledger_unavailable|nobody answers)$/;
/** A second, two while a store is rebuilt, and patience for the machine; `npm run bench -- faults` tells what it took. */
const BOUND = 5000;

const missing = whyNoRedis();

describe.skipIf(missing !== undefined).each([
  { store: 'memory', gateways: 1 },
  { store: 'redis', gateways: 2 },
] as const)(
  named('one fault alone, with $gateways gateways and the store in $store', missing),
  ({ store, gateways }) => {
    const faults = SINGLE_FAULTS.filter(({ stores }) => stores.includes(store));
    let harness: Harness;
    const seen: Seen[] = [];

    beforeAll(async () => {
      harness = await startHarness(gateways, [10n ** 15n, ...faults.map(() => 10n ** 15n)], store);
    });
    afterAll(() => harness?.stop());

    test.each(faults.map((fault, at) => ({ ...fault, at })))(
      '$name: requests are answered or told 503 in time, never 401, and it works again by itself',
      async ({ at, ...fault }) => {
        const [fresh] = harness.keys.slice(at + 1);
        if (fresh === undefined) throw new Error('there is no key for it');
        const observed = await observeFault(harness, fault, fresh);
        seen.push(...observed.seen);
        const told = observed.meanwhile.map(({ status, code }) => `${status ?? 'nobody answers'} ${code ?? ''}`.trim());
        expect([...new Set(told)].filter((one) => !TRUE_ANSWERS.test(one))).toEqual([]);
        const refused = observed.meanwhile.filter(({ status }) => status === 503);
        if (fault.refuses) expect(refused.length).toBeGreaterThan(0);
        expect(refused.filter(({ took }) => took > BOUND)).toEqual([]);
      },
    );

    test('after all of them: what completed was charged, once, no more than what was in flight besides, and counters equal sums', async () => {
      // So that every counter is there again.
      seen.push(...(await recovered(harness, harness.keys)));
      const { wrong, completed } = await verify(harness, seen);
      expect(wrong).toEqual([]);
      expect(completed).toBeGreaterThan(3 * faults.length);
    });
  },
);
