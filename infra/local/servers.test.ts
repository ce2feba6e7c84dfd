import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { stage } from '../../functions/gateway/gateway.fixture.ts';
import { KEY, keyRecord } from '../../functions/gateway/instance.fixture.ts';
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

test('a body is read whole also where the database has to say first whose key it is', async () => {
  const find = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return keyRecord();
  };
  const { app } = stage({ deps: { policies: { find } } });
  const front = gatewayServer({ find: async () => app }, createMetrics());
  server = await serve({ fetch: (...call) => front.fetch(...call), port: 0, host: '127.0.0.1' });
  const answer = await fetch(`${server.url}/team-a/main/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('hello')]);
});
