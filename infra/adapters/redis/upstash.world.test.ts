import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeStore } from '#core/ports/store.promises.ts';
import { inTime } from '../../../test/in-time.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../test/redis.ts';
import { describeUnless } from '../../../test/skip-unless.ts';
import { startUpstash, type TestUpstash, TOKEN } from '../../../test/upstash.ts';
import { probeShared } from './probe.ts';
import { createRedisStore, type Evaluate } from './store.ts';
import { openUpstash } from './upstash.ts';

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

  /** The script with a clock that the test sets, as in store.world.test.ts. */
  describeStore('Upstash over HTTPS', async () => {
    let now = Date.now();
    const store = createRedisStore({
      instanceUid: randomUUID(),
      evaluate: (script, key, words) => {
        const clock = [`${Math.floor(now / 1000)}`, `${(now % 1000) * 1000}`];
        const set = script.replace("redis.call('TIME')", '{ ARGV[#ARGV - 1], ARGV[#ARGV] }');
        return evaluate(set, key, [...words, ...clock]);
      },
    });
    await store.begin(1);
    return {
      ...{ store, epoch: 1 },
      now: () => now,
      advance: async (millis) => {
        now += millis;
      },
    };
  });

  test('a wrong token is refused', async () => {
    const wrong = openUpstash({ type: 'upstash', url, token: 'wrong' });
    const store = createRedisStore({ evaluate: wrong.evaluate, instanceUid: 'one' });
    await expect(store.read([{ scopeId: 'a', window: { start: 0, end: 1 } }])).rejects.toThrow('Unauthorized');
  });

  test('a probe finds it healthy, or says what to check', async () => {
    expect(await probeShared({ type: 'upstash', url, token: TOKEN }, 'one')).toEqual({ ok: true });
    const refused = await probeShared({ type: 'upstash', url, token: 'wrong' }, 'one');
    expect(refused).toMatchObject({ ok: false, reason: 'StoreUnreachable' });
    expect(refused).toMatchObject({ message: expect.stringMatching(/Unauthorized.*password \(token\)/) });
  });

  test('a frozen one is given up within two seconds', async () => {
    const store = createRedisStore({ evaluate, instanceUid: 'one' });
    const thaw = server.freeze();
    await expect(inTime(store.read([{ scopeId: 'a', window: { start: 0, end: 1 } }]))).rejects.toThrow(/time|abort/i);
    thaw();
  });
});
