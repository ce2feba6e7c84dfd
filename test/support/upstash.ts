// A stand-in for Upstash: its REST interface in front of a real Redis.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import type { TestRedis } from './redis.ts';

export const TOKEN = 'token';

export interface TestUpstash {
  readonly url: string;
  /** Drops every request without an answer; returns a function that ends this. */
  lose(): () => void;
  stop(): void;
}

/**
 * Serves one command as Upstash's REST API does: a JSON array in, `result` or `error` out
 * (upstash.com/docs/redis/features/restapi).
 */
export async function startUpstash({ connection }: Pick<TestRedis, 'connection'>): Promise<TestUpstash> {
  const redis = new Redis({ host: connection.host, port: connection.port, protocol: 2 });
  // The Redis may be killed: the next command reports it.
  redis.on('error', () => undefined);
  let isLosing = false;
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: unknown) => response.writeHead(status).end(JSON.stringify(body));
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return answer(401, { error: 'Unauthorized' });
    // A Worker that is killed breaks off its request.
    const body = await text(request).catch(() => undefined);
    if (body === undefined || isLosing) return;
    const words = JSON.parse(body) as [string, ...string[]];
    await redis.call(...words).then(
      (result) => answer(200, { result }),
      (error: Error) => answer(400, { error: error.message }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lose() {
      isLosing = true;
      return () => {
        isLosing = false;
      };
    },
    stop() {
      server.closeAllConnections();
      server.close();
      redis.disconnect();
    },
  };
}
