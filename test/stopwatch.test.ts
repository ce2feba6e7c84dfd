import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startStopwatch } from './stopwatch.ts';

test('what is waited for counts in full', async () => {
  const elapsed = startStopwatch();
  await pause(200);
  expect(elapsed()).toBeGreaterThan(195);
});

test('what is computed counts in full', () => {
  const elapsed = startStopwatch();
  const before = process.cpuUsage();
  const used = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  while (used() < 100);
  // Other threads of this process compute a little too.
  expect(elapsed()).toBeGreaterThan(70);
});

test.skipIf(process.platform !== 'linux')('what waits for a processor that others use does not count', async () => {
  // Two that never rest on the one processor that both may use: each has half of it.
  const burn = 'const end = Date.now() + 3000; while (Date.now() < end);';
  const burners = [0, 1].map(() => spawn('taskset', ['-c', '0', process.execPath, '-e', burn], { stdio: 'ignore' }));
  const pids = burners.map(({ pid = 0 }) => pid);
  onTestFinished(() => {
    for (const burner of burners) burner.kill('SIGKILL');
  });
  await pause(500);
  const [began, elapsed] = [performance.now(), startStopwatch(...pids)];
  await pause(1000);
  // Together they were in line for as long as it took.
  expect(elapsed()).toBeLessThan((performance.now() - began) / 2);
});
