import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { policiesOf } from '../../../../../test/doubles/policies.ts';
import { KEY, keyRecord } from '../../../../../test/gateway/instance.ts';
import { stage } from '../../../../../test/gateway/stage.ts';
import { silentLog } from '../../../../../test/support/silent-log.ts';
import { type RunningServer, serve } from '../../../../runtime/node/serve.ts';
import { type FrontDependencies, gatewayFront } from '../../functions/front.ts';

let server: RunningServer | undefined;
afterEach(() => server?.close(0));

const UNREAD = { ids: { next: randomUUID }, log: silentLog, metrics: { render: async () => 'metrics\n' } };

async function open(
  find: FrontDependencies['gateways']['find'],
  more: Partial<FrontDependencies> = {},
): Promise<string> {
  const handle = gatewayFront({ ...UNREAD, gateways: { find }, ...more });
  server = await serve({ handle, port: 0, host: '127.0.0.1' });
  return server.url;
}

test.each(['TRACE', 'OPTIONS', 'PROPFIND', 'DELETE'])(
  '%s is refused by the instance’s gateway, in its own words',
  async (method) => {
    const { app, lines } = stage();
    const url = `${await open(async () => app)}/team-a/main/v1/chat/completions`;
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
  const { app } = stage({ deps: { policies: policiesOf(find) } });
  const answer = await fetch(`${await open(async () => app)}/team-a/main/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('hello')]);
});

test('an instance is found also by a name with escapes in it, and asked for the same path', async () => {
  const { app } = stage();
  const answer = await fetch(`${await open(async () => app)}/team%2Da/main/v1/models`, {
    headers: { authorization: `Bearer ${KEY}` },
  });
  expect([answer.status, await answer.json()]).toMatchObject([200, { object: 'list' }]);
});

test('an internal error is told in the form of every refusal, and the log names the request', async () => {
  const { lines, log } = linesOfLog();
  const url = await open(() => Promise.reject(new Error('the runtime is broken')), { log });
  const answer = await fetch(`${url}/team-a/main/key`, { headers: { 'x-client-request-id': 'mine' } });
  expect([answer.status, answer.headers.get('x-client-request-id'), await answer.json()]).toMatchObject([
    500,
    'mine',
    { error: { code: 'internal_error', type: 'server_error', message: expect.stringContaining('x-request-id') } },
  ]);
  const requestId = answer.headers.get('x-request-id');
  expect(requestId).toMatch(/./);
  expect(lines).toEqual([
    ['a request failed with an internal error', expect.objectContaining({ requestId, why: 'the runtime is broken' })],
  ]);
});

test.each([
  {
    what: 'an instance that is not there',
    find: 'absent',
    path: '/team-a/main/key',
    status: 401,
    code: 'invalid_api_key',
  },
  {
    what: 'an instance that cannot run',
    find: 'unavailable',
    path: '/team-a/main/key',
    status: 503,
    code: 'ledger_unavailable',
  },
  { what: 'no instance', find: 'absent', path: '/nothing', status: 404, code: 'not_found' },
  { what: 'no instance but a path', find: 'absent', path: '/chat/completions', status: 404, code: 'not_found' },
  { what: 'a version in its place', find: 'absent', path: '/v1/chat/completions', status: 404, code: 'not_found' },
  { what: 'a version and a list', find: 'absent', path: '/v1/models', status: 404, code: 'not_found' },
] as const)('a request for $what is refused by name', async ({ find, path, status, code }) => {
  const answer = await fetch(`${await open(async () => find)}${path}`);
  expect([answer.status, answer.headers.get('x-request-id'), await answer.json()]).toMatchObject([
    status,
    expect.any(String),
    { error: { code } },
  ]);
});

test('who leaves the instance out of an address is told where gateways stand', async () => {
  const answer = await fetch(`${await open(async () => 'absent')}/v1/chat/completions`, { method: 'POST' });
  expect(await answer.json()).toMatchObject({
    error: { message: expect.stringContaining('Each gateway here has POST /{namespace}/{name}/chat/completions') },
  });
});

function linesOfLog() {
  const lines: unknown[][] = [];
  return { lines, log: { ...silentLog, error: (...line: unknown[]) => void lines.push(line) } };
}
