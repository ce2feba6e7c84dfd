import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { testUnless } from './skip-unless.ts';
import { startStopwatch } from './stopwatch.ts';

test('what is waited for counts', async () => {
  const elapsed = startStopwatch();
  await pause(200);
  // Before it began to wait it may have stood in line.
  expect(elapsed()).toBeGreaterThan(100);
});

test('what is computed counts in full', () => {
  const elapsed = startStopwatch();
  const before = process.threadCpuUsage();
  const used = () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };
  while (used() < 100);
  // Two clocks of the system, one of them coarse.
  expect(elapsed()).toBeGreaterThan(90);
});

testUnless(whyNotCounted(), 'what waits for a processor that others use does not count', async () => {
  // Two that never rest on the one processor that both may use: each has half of it.
  const burn = 'const end = Date.now() + 3000; while (Date.now() < end);';
  const burners = [0, 1].map(() =>
    spawn('taskset', ['-c', processor(), process.execPath, '-e', burn], { stdio: 'ignore' }),
  );
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

function whyNotCounted(): string | undefined {
  if (!existsSync('/proc/self/schedstat')) return 'this system does not tell who waits for a processor';
  return spawnSync('taskset', ['--version']).status === 0 ? undefined : 'there is no taskset: it comes with util-linux';
}

/** The first that this process may use. */
function processor(): string {
  return /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
}
