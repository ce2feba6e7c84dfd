// Streams that are running when PostgreSQL or Redis goes away.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { type Harness, startHarness } from './chaos/harness.ts';
import { ask } from './chaos/load.ts';

/** A stream has 2 to 20 words, so the longest lasts about 6 s. */
const WORD_PAUSE = 300;

describeUnless(whyNoRedis(), 'running streams', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness(1, [10_000_000_000n], {}, WORD_PAUSE);
  });
  afterAll(() => harness?.stop());

  test.each(['PostgreSQL', 'Redis'] as const)('end normally while %s is away', async (part) => {
    const { gateways, keys, postgres, redis, upstream } = harness;
    const [gateway, key] = [gateways[0], keys[0]];
    if (gateway === undefined || key === undefined) throw new Error('no gateway, or no key');
    const server = part === 'Redis' ? redis : postgres;
    await expect.poll(async () => (await ask(gateway.url, key, false)).status).toBe(200);
    const before = upstream.reported.size;
    let ended = 0;
    const streams = Array.from({ length: 6 }, async () => {
      const reply = await ask(gateway.url, key, true);
      ended += 1;
      return reply;
    });
    await expect.poll(() => upstream.reported.size).toBe(before + 6);
    await server.kill();
    // The longest of six has more than ten words.
    expect(ended).toBeLessThan(6);
    const replies = await Promise.all(streams);
    await server.start();
    expect(replies.map(({ status, completed }) => [status, typeof completed])).toEqual(
      replies.map(() => [200, 'string']),
    );
  });
});
