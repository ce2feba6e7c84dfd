import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createLines } from '../log-output.ts';

test('lines that come together are one write, in their order', async () => {
  const written: string[] = [];
  const lines = createLines((text) => written.push(text));
  lines.add('a\n');
  lines.add('b\n');
  expect(written).toEqual([]);
  await pause(50);
  lines.add('c\n');
  await pause(50);
  expect(written).toEqual(['a\nb\n', 'c\n']);
});

test('what is waiting is written once when it is asked for', async () => {
  const written: string[] = [];
  const lines = createLines((text) => written.push(text));
  lines.add('a\n');
  lines.flush();
  await pause(50);
  lines.flush();
  expect(written).toEqual(['a\n']);
});

test('many lines do not wait for the clock', () => {
  const written: string[] = [];
  const lines = createLines((text) => written.push(text));
  for (let count = 0; count < 1000; count += 1) lines.add(`${'x'.repeat(200)}\n`);
  lines.flush();
  expect(written.length).toBeGreaterThan(2);
  expect(written.join('')).toBe(`${'x'.repeat(200)}\n`.repeat(1000));
});

test.each([
  ['exits', 'process.exit(3)', 3],
  ['ends by an error that nobody catches', 'throw new Error("gone")', 1],
  ['rejects where nobody listens', 'void Promise.reject(new Error("gone"))', 1],
  ['has nothing more to do', '', 0],
])('a process that %s has written its last line', (_, ends, code) => {
  const program = `
    const { processLog } = await import(${JSON.stringify(join(import.meta.dirname, '../../../runtime/node/process.ts'))});
    processLog('test', 'info').info('the last line');
    ${ends}`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  expect([status, stdout.match(/the last line/g)]).toEqual([code, ['the last line']]);
});
