import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeStore } from '#core/ports/store.promises.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../test/redis.ts';
import { probeShared } from './probe.ts';
import { createRedisStore, type Evaluate } from './store.ts';
import { openUpstash } from './upstash.ts';

const missing = whyNoRedis();
const TOKEN = 'token';

/** What Upstash's REST API does with one command: a JSON array in, `result` or `error` out (upstash.com/docs/redis/features/restapi). */
function createFront(redis: Redis): Server {
  return createServer(async (request, response) => {
    const answer = (status: number, body: unknown) => response.writeHead(status).end(JSON.stringify(body));
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return answer(401, { error: 'Unauthorized' });
    const words = JSON.parse(await text(request)) as [string, ...string[]];
    await redis.call(...words).then(
      (result) => answer(200, { result }),
      (error: Error) => answer(400, { error: error.message }),
    );
  });
}

describe.skipIf(missing !== undefined)(`over a REST front${missing === undefined ? '' : ` (${missing})`}`, () => {
  let server: TestRedis;
  let redis: Redis;
  let front: Server;
  let url: string;
  let evaluate: Evaluate;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis({ host: server.connection.host, port: server.connection.port, protocol: 2 });
    front = createFront(redis);
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
    evaluate = openUpstash({ type: 'upstash', url, token: TOKEN }).evaluate;
  });
  afterAll(async () => {
    front?.closeAllConnections();
    front?.close();
    redis?.disconnect();
    await server?.stop();
  });

  /** The same script with a clock that the test sets, as in store.world.test.ts. */
  describeStore('Upstash over HTTPS', async () => {
    let now = Date.now();
    const store = createRedisStore({
      instanceUid: randomUUID(),
      evaluate: (script, key, argument) => {
        const clock = [`${Math.floor(now / 1000)}`, `${(now % 1000) * 1000}`];
        const set = script.replace("redis.call('TIME')", 'cjson.decode(ARGV[1]).clock');
        return evaluate(set, key, JSON.stringify({ ...JSON.parse(argument), clock }));
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

  test('asked before it is trusted, it is healthy, or is told what to check', async () => {
    expect(await probeShared({ type: 'upstash', url, token: TOKEN }, 'one')).toEqual({ ok: true });
    const refused = await probeShared({ type: 'upstash', url, token: 'wrong' }, 'one');
    expect(refused).toMatchObject({ ok: false, reason: 'StoreUnreachable' });
    expect(refused).toMatchObject({ message: expect.stringMatching(/Unauthorized.*password \(token\)/) });
  });

  test('one that is silent is given up within two seconds', async () => {
    const store = createRedisStore({ evaluate, instanceUid: 'one' });
    const thaw = server.freeze();
    const start = performance.now();
    await expect(store.read([{ scopeId: 'a', window: { start: 0, end: 1 } }])).rejects.toThrow();
    expect(performance.now() - start).toBeLessThan(2000);
    thaw();
  });
});
