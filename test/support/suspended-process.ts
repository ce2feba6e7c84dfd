// A zombie: a process that has ended and whose parent never reaps it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startOf } from '#adapters/process/running-processes.ts';
import { eventually } from './eventually.ts';

/** The zombie's pid and start time. It ends with the test process. */
export async function startZombie(
  identity: { uid?: number; gid?: number } = {},
): Promise<{ pid: number; start: string }> {
  // The shell execs a program that does not know of its child.
  const parent = spawn('/bin/sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], {
    ...identity,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  process.once('exit', () => parent.kill('SIGKILL'));
  const [chunk] = await once(parent.stdout, 'data');
  const pid = Number(chunk);
  const start = startOf(pid) ?? '';
  process.kill(pid, 'SIGKILL');
  await eventually(
    async () => startOf(pid),
    (seen) => seen === undefined,
  );
  return { pid, start };
}
