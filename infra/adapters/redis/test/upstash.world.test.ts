import { afterAll, beforeAll, expect, test } from 'vitest';
import { inTime } from '../../../../test/support/in-time.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { startUpstash, type TestUpstash, TOKEN } from '../../../../test/support/upstash.ts';
import { createRedisCounterStore, type Evaluate } from '../counter-store.ts';
import { probeShared } from '../probe.ts';
import { openUpstash } from '../upstash.ts';

const missing = whyNoRedis();
describeUnless(missing, 'over a REST front', () => {
  let server: TestRedis;
  let front: TestUpstash;
  let url: string;
  let evaluate: Evaluate;

  beforeAll(async () => {
    server = await startRedis();
    front = await startUpstash(server);
    url = front.url;
    evaluate = openUpstash({ type: 'upstash', url, token: TOKEN }).evaluate;
  });
  afterAll(async () => {
    front?.stop();
    await server?.stop();
  });

  test('a wrong token is refused', async () => {
    const wrong = openUpstash({ type: 'upstash', url, token: 'wrong' });
    const accounts = createRedisCounterStore({ evaluate: wrong.evaluate, instanceUid: 'one' });
    await expect(accounts.read([{ scopeId: 'a', window: { start: 0, end: 1 } }])).rejects.toThrow('Unauthorized');
  });

  test('a new token is read after the previous one is refused, only for the same address, and kept when accepted', async () => {
    const mounted = { url, token: 'wrong' };
    let reads = 0;
    const readLogin = () => {
      reads += 1;
      return { type: 'upstash' as const, ...mounted };
    };
    const rotated = openUpstash({ type: 'upstash', url, token: 'old' }, { readLogin });
    const accounts = createRedisCounterStore({ evaluate: rotated.evaluate, instanceUid: 'one' });
    const read = () => accounts.read([{ scopeId: 'a', window: { start: 0, end: 1 } }]);
    await expect(read()).rejects.toThrow('Unauthorized');
    mounted.token = TOKEN;
    mounted.url = 'https://other.test';
    await expect(read()).rejects.toThrow('Unauthorized');
    mounted.url = url;
    await read();
    // The token works: no file is read for it.
    const before = reads;
    mounted.token = 'a typo';
    await read();
    expect(reads).toBe(before);
  });

  test('a probe finds it healthy, or says what to check', async () => {
    expect(await probeShared({ type: 'upstash', url, token: TOKEN }, 'one')).toEqual({ ok: true });
    const refused = await probeShared({ type: 'upstash', url, token: 'wrong' }, 'one');
    expect(refused).toMatchObject({ ok: false, reason: 'StoreUnreachable' });
    expect(refused).toMatchObject({ message: expect.stringMatching(/Unauthorized.*password \(token\)/) });
  });

  test('a frozen one is given up within two seconds', async () => {
    const accounts = createRedisCounterStore({ evaluate, instanceUid: 'one' });
    const thaw = server.freeze();
    await expect(inTime(accounts.read([{ scopeId: 'a', window: { start: 0, end: 1 } }]))).rejects.toThrow(
      /time|abort/i,
    );
    thaw();
  });
});
