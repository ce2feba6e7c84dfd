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
