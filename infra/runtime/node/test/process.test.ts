import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startChild } from '../../../../test/support/child.ts';

/** A function whose requests and parts never end, as a process of its own. */
const program = (all: number) => `
const { openFunction } = await import(${JSON.stringify(join(import.meta.dirname, '../process.ts'))});
const environment = { PORT: 0, HOST: '127.0.0.1', METRICS_PORT: 0, LOG_LEVEL: 'info' };
const { run } = await openFunction('admission', environment);
const never = () => new Promise(() => {});
await run({ fetch: never }, (left) => (console.log('left: ' + (left > 0 && left < ${all})), never()), { drain: 1, requests: 50, all: ${all} });
`;

test('a stop ends the process when its time is over, whatever does not end', async () => {
  const child = startChild(process.execPath, ['--input-type=module', '-e', program(400)]);
  const url = await child.prints(/"url":"(http[^"]+)"/);
  const asked = fetch(url).catch(() => 'cut');
  const { code, stdout } = await child.end();
  expect([code, await asked]).toEqual([1, 'cut']);
  expect(stdout).toContain('left: true');
  expect(stdout).toContain('the stop did not end within 400 ms');
});

/** A function for one connection, which answers probes alone. */
const busy = (handler: string) => `
const { openFunction } = await import(${JSON.stringify(join(import.meta.dirname, '../process.ts'))});
const environment = { PORT: 0, HOST: '127.0.0.1', METRICS_PORT: 0, LOG_LEVEL: 'info' };
const { run } = await openFunction('gateway', environment);
const handle = async (client) => {
  if (client.path === '/') return new Promise(() => console.log('a request waits'));
  client.begin(client.path === '/healthz' ? 200 : 503, {});
  client.end(client.path);
};
const answer = async ({ url }) => {
  const { pathname } = new URL(url);
  if (pathname === '/') return new Promise(() => console.log('a request waits'));
  return new Response(pathname, { status: pathname === '/healthz' ? 200 : 503 });
};
await run({ ${handler}, maxConnections: 1 }, async () => {}, { drain: 1, requests: 1, all: 5000 });
`;

test.each([
  ['a gateway', 'handle'],
  ['the admission webhook and the reconciler', 'fetch: answer'],
])(
  'the port of metrics answers the probes of %s, also while clients have all connections of its own port',
  async (_, handler) => {
    const child = startChild(process.execPath, ['--input-type=module', '-e', busy(handler)]);
    const url = await child.prints(/"url":"(http[^"]+)"/);
    const metrics = await child.prints(/"metrics":"(http[^"]+)"/);
    const asked = fetch(url).catch(() => 'cut');
    await child.prints(/(a request waits)/);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    const probe = async (path: string) => {
      const answer = await fetch(`${metrics}${path}`);
      return `${answer.status} ${await answer.text()}`;
    };
    expect([await probe('/healthz'), await probe('/readyz')]).toEqual(['200 /healthz', '503 /readyz']);
    expect([(await child.end()).code, await asked]).toEqual([0, 'cut']);
  },
);
