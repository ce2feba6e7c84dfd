import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { stage } from '../../functions/gateway/gateway.fixture.ts';
import { createMetrics } from '../adapters/metrics.ts';
import { type Served, serve } from '../serve.ts';
import { gatewayServer } from './servers.ts';

let server: Served | undefined;
afterEach(() => server?.close(0));

test.each(['TRACE', 'OPTIONS', 'PROPFIND', 'DELETE'])(
  '%s is refused by the instance’s gateway, in its own words',
  async (method) => {
    const { app, lines } = stage();
    const front = gatewayServer({ find: async () => app }, createMetrics());
    server = await serve({ fetch: (...call) => front.fetch(...call), port: 0, host: '127.0.0.1' });
    const url = `${server.url}/team-a/main/v1/chat/completions`;
    const answer = await new Promise<{ status: number | undefined; allow: string | undefined; body: unknown }>(
      (resolve, reject) => {
        const asked = request(url, { method }, async (response) => {
          const { statusCode: status, headers } = response;
          resolve({ status, allow: headers.allow, body: JSON.parse(await text(response)) });
        });
        asked.on('error', reject).end();
      },
    );
    expect(answer).toMatchObject({ status: 405, allow: 'POST', body: { error: { code: 'method_not_allowed' } } });
    expect(lines).toEqual([]);
  },
);
